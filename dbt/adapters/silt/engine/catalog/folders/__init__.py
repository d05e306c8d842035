"""The names of a database in folders, each change made by one rename or one file under a lock."""
