"""The stores of a log: a local folder, an object store, and memory."""
