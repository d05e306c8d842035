"""Reads exactly the files that a snapshot names, with their deletion vectors and changes."""
