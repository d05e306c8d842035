"""Reads the fixtures of unit tests, rejects values that do not fit their columns, and makes maps comparable."""
