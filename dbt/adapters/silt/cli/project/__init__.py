"""Finds the warehouse of a dbt project by dbt's rules, without importing dbt."""
