"""Turns rows of this process into a DataFrame, in the same way embedded and over Spark Connect."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession


def frame(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Returns a DataFrame of the rows; the table may be empty."""
    if rows.num_rows:
        return spark.createDataFrame(rows)
    # Spark Connect reads no types from a table without rows.
    nulls = pa.Table.from_arrays([pa.nulls(1, each.type) for each in rows.schema], names=rows.column_names)
    return spark.createDataFrame(nulls).limit(0)
