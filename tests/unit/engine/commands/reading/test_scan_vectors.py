"""Rows are selected by their positions in files, in each way of passing the positions to Spark."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pytest
from pyroaring import BitMap64
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.reading import scan, scan_vectors
from dbt.adapters.silt.engine.commands.reading.positions import FILE, ROW, paths_by_report
from dbt.adapters.silt.engine.commands.reading.scan_vectors import FileRows, RowFilter, Way
from dbt.adapters.silt.engine.commands.rows.delete import delete
from dbt.adapters.silt.engine.commands.rows.file_rows import Rows
from dbt.adapters.silt.engine.commands.spark import errors
from dbt.adapters.silt.engine.kernel.errors import DataFileChangedError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.actions import AddFile
from dbt.adapters.silt.engine.kernel.table.active_files import files_table
from dbt.adapters.silt.engine.kernel.table.expressions import UNKNOWN
from tests.unit.engine.commands.spark_tables import PLAIN, VECTORS, Tables

FILES = 70
ROWS_OF_A_FILE = 130


def described(sizes: Sequence[int], rows: int | None = 1_000) -> pa.Table:
    stats = None if rows is None else f'{{"numRecords":{rows}}}'
    return files_table(
        AddFile(f"file {place}", {}, size, modification_time=0, stats=stats) for place, size in enumerate(sizes)
    )


def ways(files: pa.Table, marked: int = 900, has_join: bool = False) -> list[tuple[Way, list[str]]]:
    positions = {path: BitMap64(range(marked)) for path in files["path"].to_pylist()}
    found = scan_vectors.filters(files, positions, keeps=False, has_join=has_join)
    assert all(len(some["path"]) == len(rows.files) for some, rows in found)
    return [(rows.way, some["path"].to_pylist()) for some, rows in found]


def test_few_positions_are_literals_in_the_plan_of_each_file() -> None:
    assert ways(described([10, 20]), marked=3) == [(Way.NUMBERS, ["file 0"]), (Way.NUMBERS, ["file 1"])]


def test_files_of_the_same_size_are_in_different_scans() -> None:
    assert ways(described([10, 20, 10, 30])) == [(Way.ARRAY, ["file 0", "file 1", "file 3"]), (Way.ARRAY, ["file 2"])]


def test_no_scan_has_more_files_than_branches_that_java_compiles() -> None:
    found = ways(described(range(1, 101)))
    assert {way for way, _ in found} == {Way.ARRAY}
    assert [len(paths) for _, paths in found] == [32, 32, 32, 4]


@pytest.mark.parametrize(
    "files",
    [described([10] * 100), described([10, 0]), described([10, 20], rows=None), described([10, 20], rows=1 << 29)],
    ids=["too many of one size", "no size", "no number of rows", "too many rows"],
)
def test_files_that_cannot_be_distinguished_by_size_are_joined_by_their_paths(files: pa.Table) -> None:
    assert ways(files) == [(Way.JOIN, files["path"].to_pylist())]


def test_files_that_are_joined_for_another_reason_are_joined_once() -> None:
    assert ways(described([10, 20]), has_join=True) == [(Way.JOIN, ["file 0", "file 1"])]


def with_many_files(tables: Tables) -> DeltaLog:
    log = tables.made(
        "select id, concat('x', id % 7) as text, cast(id div 910 as int) as p "
        f"from range(0, {FILES * ROWS_OF_A_FILE}, 1, {FILES})"
    )
    assert log.snapshot().num_files == FILES
    return log


def chosen(log: DeltaLog, seed: int) -> Mapping[str, BitMap64]:
    chance = random.Random(seed)
    paths = chance.sample(log.snapshot().files["path"].to_pylist(), 60)
    return {path: BitMap64(chance.sample(range(ROWS_OF_A_FILE), chance.randint(0, ROWS_OF_A_FILE))) for path in paths}


@pytest.mark.parametrize("seed", range(3))
def test_exactly_the_rows_at_the_positions_are_read(tables: Tables, seed: int) -> None:
    log = with_many_files(tables)
    paths = paths_by_report(log, log.snapshot().files)
    where = {
        (paths[row[FILE]], row[ROW]): row["id"]
        for row in scan.read(tables.spark, log, log.snapshot(), with_position=True).collect()
    }
    only = chosen(log, seed)
    found = scan.read(tables.spark, log, log.snapshot(), only=only).collect()
    expected = sorted(where[path, place] for path, positions in only.items() for place in positions)
    assert sorted(row["id"] for row in found) == expected


@pytest.mark.parametrize("tables", [VECTORS], indirect=True)
def test_rows_deleted_from_many_files_are_missing_in_every_reader(tables: Tables) -> None:
    log = with_many_files(tables)
    marked = _delete(tables, log, "id % 11 in (0, 3) or id between 1000 and 1300")
    remaining = [i for i in range(FILES * ROWS_OF_A_FILE) if not (i % 11 in (0, 3) or 1000 <= i <= 1300)]
    assert marked > 60
    assert [row[0] for row in sorted(tables.rows(log))] == remaining
    narrow = tables.read(log).filter("text = 'x3' and p = 4").select("id").collect()
    assert sorted(row["id"] for row in narrow) == [i for i in remaining if i % 7 == 3 and i // 910 == 4]


def test_a_file_with_more_rows_or_another_size_than_in_the_log_fails_the_read(spark: SparkSession) -> None:
    rows = RowFilter((FileRows(20, 70, BitMap64([3])), FileRows(10, 5, BitMap64())), keeps=False, way=Way.ARRAY)
    numbers = spark.range(70).withColumn("size", F.lit(20))
    assert numbers.filter(rows.condition(spark, "size", "id")).count() == 69
    for size in (10, 15, 30):
        with pytest.raises(DataFileChangedError, match="another size, or more rows"), errors.mapped():
            numbers.withColumn("size", F.lit(size)).filter(rows.condition(spark, "size", "id")).collect()


def _delete(tables: Tables, log: DeltaLog, condition: str) -> int:
    """Deletes rows by vectors; returns the number of files with a vector."""
    delete(tables.spark, tables.target(log), Rows("t", condition, UNKNOWN), PLAIN)
    return sum(add.deletion_vector is not None for add in log.snapshot().add_files())
