"""The contestants: ways to keep a table."""
