"""A script: Python, dbt and Spark start, answer one query, and end. What no run of dbt on Spark can be without."""

from __future__ import annotations

import dbt.cli.main
from pyspark.sql import SparkSession


def main() -> None:
    """Starts and stops."""
    dbt.cli.main.dbtRunner()
    spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
    spark.range(1).collect()
    spark.stop()


if __name__ == "__main__":
    main()
