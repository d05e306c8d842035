"""Reads and writes tables as a data source of PySpark (`format("silt")`): batches and streams, through Arrow."""
