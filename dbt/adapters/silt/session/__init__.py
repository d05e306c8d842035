"""Finds Java, starts Spark, and gives each dbt connection its handle and cursor."""
