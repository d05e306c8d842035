"""Reads the records of runs, without Spark and dbt: facts in commits, the journal and the registry."""
