"""Writes of a table of many partitions, next to Spark's own partitioned Parquet, without a log."""

from __future__ import annotations

import shutil
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.dbt_work.measured import Compared, in_turn
from dbt.adapters.silt.engine.warehouse import Warehouse
from dbt.adapters.silt.session.spark import SessionSettings, open_session

ROWS, PARTITIONS = 2_000_000, 1_000
_ROWS = (
    "select id, cast({key} as int) as p, concat('customer ', id % 100000) as customer, "
    "((id * 7919) % 1000003) / 100 as amount, timestamp_seconds(1700000000 + id) as at from range(0, {rows}, 1, 4)"
)


class _Writers:
    """Writes one query's rows in each way."""

    def __init__(self, folder: Path, rows: str) -> None:
        self._spark: SparkSession = open_session(SessionSettings(master="local[*]", spark_conf={}))
        self._house, self._bare, self._rows = Warehouse(self._spark, str(folder / "house")), folder / "bare", rows
        self._house.sql("create schema if not exists main")

    def bare(self) -> None:
        """Writes the rows by Spark alone."""
        shutil.rmtree(self._bare, ignore_errors=True)
        self._spark.sql(self._rows).write.partitionBy("p").parquet(str(self._bare))

    def silt(self) -> None:
        """Writes the rows as a table."""
        self._house.sql(f"create or replace table main.written partitioned by (p) as {self._rows}")


def measure(folder: Path, share: float, rounds: int) -> list[Compared]:
    """Times rows whose partitions are spread over all tasks, and rows that are grouped by partition."""
    rows = int(ROWS * share)
    spread = {"scattered": f"id % {PARTITIONS}", "in order": f"id div {rows // PARTITIONS}"}
    found = []
    for name, key in spread.items():
        writers = _Writers(folder / "partitions" / name, _ROWS.format(key=key, rows=rows))
        ways = {"Spark, partitionBy": writers.bare, "a table": writers.silt}
        found.append(in_turn(f"{rows:,} rows {name}, {PARTITIONS:,} partitions", ways, rounds))
    return found
