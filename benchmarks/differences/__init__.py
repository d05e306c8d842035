"""Times the comparison of two versions of a table, beside full comparisons by Spark and DuckDB."""
