"""Starts Python, dbt and Spark, runs one query, and ends: the minimum of every run of dbt."""

from __future__ import annotations

import dbt.cli.main
from pyspark.sql import SparkSession


def main() -> None:
    """Starts Spark, runs a query, and stops."""
    dbt.cli.main.dbtRunner()
    spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
    spark.range(1).collect()
    spark.stop()


if __name__ == "__main__":
    main()
