"""The stores of a log: a local folder and an object store."""
