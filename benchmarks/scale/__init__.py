"""Counts what a table of a million files, a log of 100,000 commits and a run of 2,000 models ask of an object store."""
