"""Runs MERGE: makes the source stable, joins it with the target and applies the clauses."""
