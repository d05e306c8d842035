"""Reads the fixtures of unit tests: refuses values that their columns cannot hold, and makes maps comparable."""
