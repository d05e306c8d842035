"""Answers and explains queries without Spark, from table logs or from files by Arrow, for `silt sql` and dbt."""
