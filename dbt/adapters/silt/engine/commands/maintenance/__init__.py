"""Runs OPTIMIZE, VACUUM, RESTORE and upkeep."""
