"""Reads tables as Arrow, without Spark: for pandas, polars, DuckDB and the command line."""
