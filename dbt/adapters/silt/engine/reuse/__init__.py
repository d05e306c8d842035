"""Decides, from facts in the log, whether a table already holds what a build would write."""
