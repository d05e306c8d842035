"""Runs one statement: finds its table, resolves its texts and calls one command."""
