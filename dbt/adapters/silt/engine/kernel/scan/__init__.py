"""Chooses the files of snapshots that a read needs, and answers extremes from statistics."""
