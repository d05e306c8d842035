"""Reads and keeps a table's log: commits, checkpoints, checksums and snapshots."""
