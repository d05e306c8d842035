"""Runs the steps that statements on a table share: find, pass on, refuse, skip, resolve, run."""
