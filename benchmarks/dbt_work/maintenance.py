"""OPTIMIZE and VACUUM of small files, next to Spark rewriting and Python deleting copies of the same files."""

from __future__ import annotations

import shutil
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.dbt_work.measured import Compared, in_turn
from dbt.adapters.silt.engine.commands.maintenance.vacuum import RETENTION_CHECK
from dbt.adapters.silt.engine.warehouse import Warehouse
from dbt.adapters.silt.session.spark import SessionSettings, open_session

ROWS, FILES = 2_000_000, 400
_ROWS = (
    "select id, cast(id % 1000 as int) as category, concat('customer ', id % 100000) as customer, "
    "((id * 7919) % 1000003) / 100 as amount from range(0, {rows}, 1, {files})"
)


class _Table:
    """A table of small files, which is re-created for each round, and a copy of its files."""

    def __init__(self, folder: Path, rows: int) -> None:
        self._spark: SparkSession = open_session(SessionSettings(master="local[*]", spark_conf={}))
        self._spark.conf.set(RETENTION_CHECK, "false")
        self._house, self._rows = Warehouse(self._spark, str(folder / "house")), _ROWS.format(rows=rows, files=FILES)
        self._small = folder / "house" / "main" / "small"
        self._copy, self._bare = folder / "copy", folder / "bare"
        self._house.sql("create schema if not exists main")

    def make(self) -> None:
        """Creates the table, and copies its files."""
        self._house.sql("drop table if exists main.small")
        self._house.sql(f"create table main.small as {self._rows}")
        shutil.rmtree(self._copy, ignore_errors=True)
        self._copy.mkdir()
        for file in self._small.rglob("*.parquet"):
            shutil.copy(file, self._copy)
        self._count(self._copy, FILES)

    def rewrite(self) -> None:
        """Writes the files as one, by Spark alone."""
        files = [str(file) for file in self._copy.glob("*.parquet")]
        shutil.rmtree(self._bare, ignore_errors=True)
        self._spark.read.parquet(*files).coalesce(1).write.parquet(str(self._bare))

    def optimize(self) -> None:
        """Writes the files as one, by OPTIMIZE."""
        self._house.sql("optimize main.small")
        self._count(self._small, FILES + 1)

    def delete(self) -> None:
        """Deletes the files that the rewrite left, by Python alone."""
        for file in self._copy.glob("*.parquet"):
            file.unlink()

    def vacuum(self) -> None:
        """Deletes the files that OPTIMIZE left, by VACUUM."""
        self._house.sql("vacuum main.small retain 0 hours")
        self._count(self._small, 1)

    def _count(self, folder: Path, expected: int) -> None:
        found = sum(1 for _ in folder.rglob("*.parquet"))
        if found != expected:
            raise RuntimeError(f"{found} files are in {folder}, and {expected} should be")


def measure(folder: Path, share: float, rounds: int) -> list[Compared]:
    """Times the two statements, in order, on a table that is re-created for each round."""
    table = _Table(folder / "maintenance", int(ROWS * share))
    ways = {
        "rewrite": table.rewrite,
        "optimize": table.optimize,
        "delete": table.delete,
        "vacuum": table.vacuum,
    }
    costs = in_turn("", {"make": table.make, **ways}, rounds).ways
    names = {
        "rewrite": "Spark rewrites them",
        "optimize": "OPTIMIZE",
        "delete": "Python deletes them",
        "vacuum": "VACUUM",
    }

    def compared(case: str, *chosen: str) -> Compared:
        return Compared(f"{case} of {FILES} files", {names[way]: costs[way] for way in chosen})

    return [compared("rewriting", "rewrite", "optimize"), compared("deleting", "delete", "vacuum")]
