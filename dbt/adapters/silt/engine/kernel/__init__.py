"""The commit protocol of Delta tables, without Spark and without dbt."""
