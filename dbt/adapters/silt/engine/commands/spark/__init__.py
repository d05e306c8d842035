"""Converts between the engine's values and Spark's: types, errors, partitions, settings, sources and storages."""
