"""Reads sources that are files and writes models as files outside of the warehouse."""
