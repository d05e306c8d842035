"""Determines the logical run of a dbt command: its run id, start, interruption, continuation and retry."""
