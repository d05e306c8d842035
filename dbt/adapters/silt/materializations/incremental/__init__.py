"""Checks what an incremental model configures and turns it into keys, conditions and WHEN clauses."""
