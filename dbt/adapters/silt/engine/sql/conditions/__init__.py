"""Reads conditions into predicates that can rule out files."""
