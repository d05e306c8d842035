"""Finds how Spark reaches the files of tables: paths, object store settings, and whether it sees the same files."""
