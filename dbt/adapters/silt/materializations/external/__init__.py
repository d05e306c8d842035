"""Reads files as sources and writes models as files outside of the warehouse."""
