"""The ways to keep a table that are compared."""
