"""Measures each statement against the same on bare Spark; `python -m benchmarks --help`."""
