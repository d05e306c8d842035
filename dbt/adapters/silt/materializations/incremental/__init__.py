"""Checks the configuration of an incremental model and converts it into keys, conditions and WHEN clauses."""
