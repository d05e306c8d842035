"""Brings Spark what it needs to reach object stores, and tries a storage for `dbt debug`."""
