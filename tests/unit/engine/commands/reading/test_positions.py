"""Positions are the rows' positions in their files, whichever way they are collected."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame

from dbt.adapters.silt.engine.commands.reading import positions, scan
from dbt.adapters.silt.engine.commands.reading.positions import FILE, ROW
from dbt.adapters.silt.engine.kernel.errors import InternalError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from tests.unit.engine.commands.spark_tables import Tables

PARTS = 5


@pytest.fixture(params=["packed", "grouped: many rows", "grouped: two names with one check sum"])
def collect(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[tuple[object, ...]]]:
    """Collects in one of the ways; returns each row as its file, its value and its position."""
    if "many" in request.param:
        monkeypatch.setattr(positions, "_MOST_ROWS", 1)
    if "check sum" in request.param:
        monkeypatch.setattr(zlib, "crc32", lambda data: 7)

    def collected(rows: DataFrame, log: DeltaLog, by: str | None = None) -> list[tuple[object, ...]]:
        found = positions.collect(rows, log, log.snapshot().files, by)
        return [(each.path, each.value, place) for each in found for place in each.positions.to_pylist()]

    return collected


def made(tables: Tables) -> DeltaLog:
    log = tables.made(
        f"select id, concat('a b%[', id % {PARTS}) part from range(0, 2000, 1, 3)", partition_columns=("part",)
    )
    assert log.snapshot().num_files >= PARTS
    return log


def by_rows(rows: DataFrame, log: DeltaLog, *columns: str) -> list[tuple[object, ...]]:
    paths = positions.paths_by_report(log, log.snapshot().files)
    return [(paths[row[FILE]], *row[1:]) for row in rows.select(FILE, *columns, ROW).collect()]


def test_each_row_is_found_at_its_position(tables: Tables, collect: Callable[..., list[tuple[object, ...]]]) -> None:
    log = made(tables)
    rows = scan.read(tables.spark, log, log.snapshot(), with_position=True).filter("id % 7 < 2")
    assert sorted(collect(rows, log)) == sorted((path, 0, place) for path, place in by_rows(rows, log))


def test_rows_are_distinguished_by_a_column_and_found_as_often_as_they_occur(
    tables: Tables, collect: Callable[..., list[tuple[object, ...]]]
) -> None:
    log = made(tables)
    rows = scan.read(tables.spark, log, log.snapshot(), with_position=True).filter("id % 50 < 3")
    rows = rows.selectExpr("*", "cast(id % 3 as int) - 1 as kind")
    twice = rows.unionAll(rows.filter("kind = 1"))
    assert Counter(collect(twice, log, "kind")) == Counter(by_rows(twice, log, "kind"))


def test_an_empty_frame_has_no_positions(tables: Tables, collect: Callable[..., list[tuple[object, ...]]]) -> None:
    log = made(tables)
    rows = scan.read(tables.spark, log, log.snapshot(), with_position=True).filter("id < 0")
    assert collect(rows, log) == []
    assert collect(rows.selectExpr("*", "1 as kind"), log, "kind") == []


def test_a_file_outside_of_the_requested_files_is_an_error(tables: Tables) -> None:
    log = made(tables)
    files = log.snapshot().files
    rows = scan.read(tables.spark, log, log.snapshot(), with_position=True)
    for ask in (positions.collect, positions.rows_by_path):
        with pytest.raises(InternalError, match="not asked for"):
            ask(rows, log, files.slice(1))
