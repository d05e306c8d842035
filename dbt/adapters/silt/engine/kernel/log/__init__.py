"""Reads and maintains a table's log: commits, checkpoints, checksums and snapshots."""
