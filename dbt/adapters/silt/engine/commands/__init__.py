"""Runs the commands that need Spark; this folder has what they share: target, settings, outcome, commit."""
