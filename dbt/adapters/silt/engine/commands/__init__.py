"""Runs the commands that need Spark; this folder contains their shared parts: target, settings, outcome, commit."""
