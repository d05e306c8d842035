"""delta-spark, set up for small logs; its jars are in a folder that the caller names."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pyspark.sql import DataFrame, SparkSession

from benchmarks.contestants.by_sql import BySql
from benchmarks.data import Rows


def session_settings(jars: Path) -> dict[str, str]:
    """Returns the session settings that delta-spark needs.

    Raises:
        FileNotFoundError: if the folder contains no jar.
    """
    found = sorted(str(path) for path in jars.glob("*.jar"))
    if not found:
        raise FileNotFoundError(f"no jar in {jars}: put delta-spark, delta-storage and what they need there")
    return {
        "spark.jars": ",".join(found),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",
        # The number of tasks with which VACUUM lists folders; the default is ten thousand.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
    }


class DeltaSpark(BySql):
    """Tables by path."""

    name = "delta-spark"

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        super().__init__(folder)
        self._spark = spark

    def for_thread(self) -> Self:
        return self

    def replace(self, table: str, rows: Rows) -> None:
        # It allows no subquery in the condition of a DELETE, so the condition is the range of the keys.
        self.delete(table, rows.low, rows.high)
        self.append(table, rows)

    def execute(self, statement: str) -> None:
        self._spark.sql(statement)

    def query(self, statement: str) -> DataFrame:
        return self._spark.sql(statement)

    def reference(self, table: str) -> str:
        return f"delta.`{self._folder / table}`"
