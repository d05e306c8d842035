"""Counts requests to an object store: a million files, a log of 100,000 commits, a run of 2,000 models."""
