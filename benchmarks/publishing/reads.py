"""Times reads of a table on a branch against reads of the published table, by one Spark."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession

from dbt.adapters.silt import engine as silt
from dbt.adapters.silt.engine.catalog.branches.run_branches import BranchedRun
from dbt.adapters.silt.engine.warehouse import Warehouse

_QUERY: Final = "select count(distinct id), sum(amount) from main.orders"
_RUN: Final = BranchedRun("shop", "dev", "benchmark")
_COMMITS: Final = 5


def reads(folder: Path, rows: int, repetitions: int) -> dict[str, tuple[float, float]]:
    """Returns for each way of reading the seconds of the published table and of the table on the branch of a run, each
    of which has the same number of rows and commits.

    Raises:
        RuntimeError: if the results differ in the number of rows.
    """
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    house = Warehouse(spark, str(folder))
    for _ in range(_COMMITS):
        _append(house, rows)
    run, branch = house.catalog.run_branches("silt").open(_RUN)
    inside = house.for_session(spark.newSession(), branch=branch)
    for _ in range(_COMMITS):
        _append(inside, rows)
    for _ in range(_COMMITS):
        _append(house, rows)
    place = str(folder)
    return {
        "a query": _paired(lambda: _queried(house), lambda: _queried(inside), repetitions),
        "silt.read": _paired(
            lambda: silt.read("main.orders", place),
            lambda: silt.read("main.orders", place, branch=run.run_id),
            repetitions,
        ),
    }


def _append(house: Warehouse, rows: int) -> None:
    values = f"select id, id % 7 as amount from range({rows})"
    if house.catalog.has_schema("silt", "main") and house.sql("show tables in main").count():
        house.sql(f"insert into main.orders {values}")
    else:
        house.sql(f"create table main.orders as {values}")


def _queried(house: Warehouse) -> pa.Table:
    (row,) = house.sql(_QUERY).collect()
    return pa.table({"n": [row[0]]})


def _paired(plain: Callable[[], pa.Table], branch: Callable[[], pa.Table], repetitions: int) -> tuple[float, float]:
    """Returns the median seconds of both; they take turns, and the first turn warms up."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(repetitions + 1):
        found = []
        for each, taken in zip((plain, branch), seconds, strict=True):
            began = time.perf_counter()
            found.append(each().num_rows)
            taken.append(time.perf_counter() - began)
        if len(set(found)) > 1:
            raise RuntimeError(f"the table has {found} rows")
    return statistics.median(seconds[0][1:]), statistics.median(seconds[1][1:])
