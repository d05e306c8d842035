"""Reads Spark's failures: causes in Java, what they say, and which error of the engine each is."""
