"""Measures a long log and a table of many files against delta-rs, without Spark."""
