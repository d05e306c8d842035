"""Finds, starts and ends the Spark that stays between commands, by files and locks; without Spark and without dbt."""
