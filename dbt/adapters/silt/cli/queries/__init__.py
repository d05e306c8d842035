"""Answers and explains queries without Spark: from the logs of tables, or from their files by Arrow."""
