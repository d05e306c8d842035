"""Answers and explains queries without Spark, from table logs or from files by Arrow."""
