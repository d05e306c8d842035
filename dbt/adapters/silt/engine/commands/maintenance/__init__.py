"""Carries out OPTIMIZE, VACUUM and RESTORE."""
