"""Replaces the rows of the keys that changed in the inputs of a query, as far as Spark's plan allows it."""
