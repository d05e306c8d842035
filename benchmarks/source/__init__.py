"""Measures the data source of PySpark, in rows per second, next to `Warehouse`."""
