"""Reads the data that `silt show` prints about a table: column statistics and rows."""
