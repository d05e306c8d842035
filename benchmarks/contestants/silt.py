"""dbt-silt."""

from __future__ import annotations

from copy import copy
from pathlib import Path
from typing import Self

from pyspark.sql import DataFrame, SparkSession

from benchmarks.contestants.by_sql import BySql
from benchmarks.data import Rows
from dbt.adapters.silt.engine import Warehouse
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot

SCHEMA = "bench"


class Silt(BySql):
    """Tables of a warehouse."""

    name = "dbt-silt"

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        super().__init__(folder / SCHEMA)
        folder.mkdir(parents=True, exist_ok=True)
        self._warehouse = Warehouse(spark, str(folder))
        self.execute(f"create schema if not exists {SCHEMA}")
        self.execute("set silt.retentionDurationCheck.enabled = false")

    def for_thread(self) -> Self:
        other = copy(self)
        other._warehouse = self._warehouse.for_session(self._warehouse.spark.newSession())
        return other

    def replace(self, table: str, rows: Rows) -> None:
        self.execute(f"insert into {self.reference(table)} replace using (id) {rows.sql}")

    def snapshot(self, table: str) -> Snapshot:
        """Returns the newest snapshot of a table."""
        return self._warehouse.snapshot(RelationName("silt", SCHEMA, table))

    def execute(self, statement: str) -> None:
        self._warehouse.sql(statement)

    def query(self, statement: str) -> DataFrame:
        return self._warehouse.sql(statement)

    def reference(self, table: str) -> str:
        return f"{SCHEMA}.{table}"
