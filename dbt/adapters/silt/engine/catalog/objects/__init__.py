"""The names of a database in an object store, each change made by one conditional write."""
