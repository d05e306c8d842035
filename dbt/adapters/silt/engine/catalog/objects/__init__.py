"""Stores the names of a database in an object store; each change is one conditional write."""
