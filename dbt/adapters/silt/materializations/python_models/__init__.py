"""Runs python models in dbt's process and passes their results to Spark as rows."""
