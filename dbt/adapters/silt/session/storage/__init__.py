"""Provides Spark with the settings and jars for object stores."""
