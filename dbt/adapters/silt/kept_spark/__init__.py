"""Finds, starts and stops the Spark that keeps running between commands, by files and locks, without Spark or dbt."""
