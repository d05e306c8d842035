"""The stores of a log: a local folder, an object store, memory, and a store that injects faults."""
