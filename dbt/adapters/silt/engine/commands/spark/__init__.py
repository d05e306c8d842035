"""Connects the engine's values with Spark's: types, errors, partitions, settings and sources."""
