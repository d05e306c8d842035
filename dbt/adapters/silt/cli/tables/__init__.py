"""Reads what `silt show` says of a table: the statistics of its columns, and its rows."""
