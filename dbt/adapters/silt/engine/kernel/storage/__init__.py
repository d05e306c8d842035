"""The stores that a log is in: a local folder, an object store, memory, and one with faults."""
