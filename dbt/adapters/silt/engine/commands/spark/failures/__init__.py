"""Interprets Spark's failures: Java causes, their messages, and the engine error for each failure."""
