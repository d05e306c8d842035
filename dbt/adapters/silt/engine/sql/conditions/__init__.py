"""Parses conditions into predicates that can exclude files."""
