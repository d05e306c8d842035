"""Reads SQL text into frozen values, without Spark and without a catalog."""
