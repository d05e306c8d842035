"""Finds the warehouse of a dbt project by the rules of dbt, without dbt."""
