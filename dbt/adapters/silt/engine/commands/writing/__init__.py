"""Writes data files and change files, and checks the rows in the same pass."""
