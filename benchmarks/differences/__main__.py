"""Compares two versions of a large table by `silt diff`, by Spark and by DuckDB, and prints the times.

    python -m benchmarks.differences --rows 10000000 --changed 1000 --files 40 --changed-files 4

The rows that differ are in a few files. `silt diff` reads these files alone, by the key and without a key; Spark and
DuckDB compare all rows of both versions by EXCEPT ALL in both directions. All of them must find the same rows.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from dbt.adapters.silt.engine.arrow.table_diff import Version, diff_tables
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, Metadata, Protocol
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructField, StructType
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit

SCHEMA = StructType(
    (
        StructField("id", PrimitiveType("long")),
        StructField("name", PrimitiveType("string")),
        StructField("amount", PrimitiveType("double")),
    )
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the seconds of each comparison.

    Raises:
        RuntimeError: if two of them find different rows.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.differences", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--changed", type=int, default=1_000)
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--changed-files", type=int, default=4)
    given = parser.parse_args(arguments)
    shown = Table("comparison", "seconds", "files read", title=f"{given.changed:,} of {given.rows:,} rows differ")
    with tempfile.TemporaryDirectory() as folder:
        log = written(Path(folder, "t"), given.rows // given.files, given.files, given.changed, given.changed_files)
        for name, seconds, files in compared(log, given.changed):
            shown.add_row(name, f"{seconds:.2f}", str(files))
    Console(width=100).print(shown)
    return 0


def written(folder: Path, rows: int, files: int, changed: int, changed_files: int) -> DeltaLog:
    """Returns a table whose second version has other amounts in some rows of some files.

    Args:
        rows: the rows of each file.
    """
    folder.mkdir()
    log = DeltaLog(LocalStore(str(folder)), folder.name)
    log.store.make_folder("_delta_log")
    before = [_file(log, number * rows, rows, 0) for number in range(files)]
    metadata = Metadata(log.clock.new_id(), SCHEMA.to_json())
    created = Changes(Operation("CREATE TABLE"), tuple(before), metadata=metadata, protocol=Protocol(1, 2))
    commit(log, None, created, ReadSet(), CommitSettings())
    of_each = changed // changed_files
    adds = tuple(_file(log, number * rows, rows, of_each) for number in range(changed_files))
    removes = tuple(each.remove(log.clock.now_ms()) for each in before[:changed_files])
    commit(log, log.snapshot(), Changes(Operation("UPDATE"), adds, removes), ReadSet(), CommitSettings())
    return log


def _file(log: DeltaLog, first: int, rows: int, changed: int) -> AddFile:
    ids = np.arange(first, first + rows)
    amounts = (ids % 977).astype(float)
    amounts[:changed] += 0.5
    names = pa.array(ids % 1000).cast(pa.string())
    sink, path = io.BytesIO(), f"{log.clock.new_id()}.parquet"
    pq.write_table(pa.table({"id": ids, "name": names, "amount": amounts}), sink)
    log.store.put(path, sink.getvalue())
    stats = f'{{"numRecords":{rows},"minValues":{{"id":{first}}},"maxValues":{{"id":{first + rows - 1}}}}}'
    return AddFile(path, {}, len(sink.getvalue()), log.clock.now_ms(), stats=stats)


def compared(log: DeltaLog, changed: int) -> list[tuple[str, float, int]]:
    """Returns the name, the seconds and the number of read files of each comparison.

    Raises:
        RuntimeError: if a comparison does not find the changed rows.
    """
    both = log.snapshot_at(0), log.snapshot_at(1)
    all_files = sum(each.num_files for each in both)
    found: list[tuple[str, float, int]] = []

    def run(name: str, compare: Callable[[], tuple[tuple[int, int], int]]) -> None:
        began = time.perf_counter()
        rows, files = compare()
        found.append((name, time.perf_counter() - began, files))
        if rows != (changed, changed):
            raise RuntimeError(f"{name} finds {rows[0]:,} new and {rows[1]:,} old rows, not {changed:,} of each")

    run("silt diff by the key", lambda: _by_silt(log, both, ("id",)))
    run("silt diff without a key", lambda: _by_silt(log, both, ()))
    run("DuckDB, EXCEPT ALL twice", lambda: (_by_duckdb(log, both), all_files))
    spark = _spark()
    run("Spark, EXCEPT ALL twice", lambda: (_by_spark(spark, log, both), all_files))
    return found


def _by_silt(log: DeltaLog, both: tuple[Snapshot, Snapshot], key: Sequence[str]) -> tuple[tuple[int, int], int]:
    found = diff_tables(Version(log, both[0]), Version(log, both[1]), key, 0)
    return (found.added + found.changed, found.removed + found.changed), found.files_read


def _by_duckdb(log: DeltaLog, both: tuple[Snapshot, Snapshot]) -> tuple[int, int]:
    old, new = (f"(select * from read_parquet({_paths(log, each)}))" for each in both)
    return _count(new, old), _count(old, new)


def _count(one: str, other: str) -> int:
    ((count,),) = duckdb.sql(f"select count(*) from (select * from {one} except all select * from {other})").fetchall()
    return int(count)


def _by_spark(spark: SparkSession, log: DeltaLog, both: tuple[Snapshot, Snapshot]) -> tuple[int, int]:
    old, new = (spark.read.parquet(*_paths(log, each)) for each in both)
    return new.exceptAll(old).count(), old.exceptAll(new).count()


def _paths(log: DeltaLog, snapshot: Snapshot) -> list[str]:
    return [f"{log.store.root}/{path}" for path in snapshot.files["path"].to_pylist()]


def _spark() -> SparkSession:
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")  # type: ignore[attr-defined]
    spark: SparkSession = builder.config("spark.driver.memory", "3g").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.range(10).count()
    return spark


if __name__ == "__main__":
    sys.exit(main())
