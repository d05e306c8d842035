"""Runs python models in dbt's process and gives their results to Spark as rows."""
