"""Registers tables in a metastore, so that other engines find them by name."""
