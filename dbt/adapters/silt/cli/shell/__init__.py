"""Runs the statements of `silt sql`, without Spark or with Spark in another process, and prints their results."""
