"""Counts the files and bytes of a clustered table that many small changes and OPTIMIZE write."""
