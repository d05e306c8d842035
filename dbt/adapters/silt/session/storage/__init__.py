"""Provides Spark with the settings and jars for object stores, and tests a storage for `dbt debug`."""
