"""Describes data files: footers, statistics, bounds and deletion vectors."""
