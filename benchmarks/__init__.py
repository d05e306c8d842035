"""Benchmarks: the time of each statement, compared with bare Spark; see `python -m benchmarks --help`."""
