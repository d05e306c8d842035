"""dbt-silt."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from benchmarks.contestants.by_sql import BySql
from dbt.adapters.silt.engine import Warehouse

SCHEMA = "bench"


class Silt(BySql):
    """Tables of a warehouse."""

    name = "dbt-silt"

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        super().__init__(folder / SCHEMA)
        self._warehouse = Warehouse(spark, str(folder))
        self.execute(f"create schema {SCHEMA}")

    def execute(self, statement: str) -> None:
        self._warehouse.sql(statement)

    def query(self, statement: str) -> DataFrame:
        return self._warehouse.sql(statement)

    def reference(self, table: str) -> str:
        return f"{SCHEMA}.{table}"
