"""Writes data files in Spark's tasks, and commits them in the driver."""
