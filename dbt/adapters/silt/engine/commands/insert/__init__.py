"""Writes rows by INSERT: appends them, or replaces rows selected by condition, key or partition."""
