"""Measures how a project's runs grow with its rows: time, memory and disk."""
