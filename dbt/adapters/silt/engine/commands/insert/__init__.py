"""Writes rows by INSERT: appended, or in place of rows that are chosen by condition, key or partition."""
