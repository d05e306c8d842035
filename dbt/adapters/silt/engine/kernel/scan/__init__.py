"""Selects the files of snapshots that a read needs, and computes minimum and maximum from statistics."""
