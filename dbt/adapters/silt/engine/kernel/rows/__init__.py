"""Reads the rows of data files as Arrow batches: columns, conditions, and files without their deleted rows."""
