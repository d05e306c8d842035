"""Finds the tables, functions, columns and SELECTs that a query or an expression names."""
