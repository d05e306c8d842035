"""Parses SQL into frozen values, without Spark and without a catalog."""
