"""Times a table whose rows are replaced by the keys that changed in its input."""
