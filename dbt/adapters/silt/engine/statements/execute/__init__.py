"""Calls the command for each kind of statement and returns its result."""
