"""Finds the changes of a table that a statement reads, and the changes that a table has not consumed."""
