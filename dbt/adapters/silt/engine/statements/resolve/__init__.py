"""Resolves the names in a statement and pins its tables to snapshots of one consistent cut."""
