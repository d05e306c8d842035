"""Stores the names of a database in folders; each change is one rename or one file under a lock."""
