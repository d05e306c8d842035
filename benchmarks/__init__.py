"""What each statement costs, beside the same work on bare Spark; `python -m benchmarks --help`."""
