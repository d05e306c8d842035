"""Reads, without Spark and dbt, what runs leave behind: facts in commits, the journal and the registry."""
