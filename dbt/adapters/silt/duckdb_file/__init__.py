"""Writes a file of DuckDB with a view for each table, which `silt catalog` shows to BI tools."""
