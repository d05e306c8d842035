"""Reads versions, changes and streams in Spark's tasks."""
