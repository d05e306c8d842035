"""Commits actions as the next version of a table: attempts, conflict checks, RESTORE."""
