"""Measures the PySpark data source in rows per second, compared with `Warehouse`."""
