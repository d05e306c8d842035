"""Finds the files that VACUUM may delete and whatever is damaged in a table."""
