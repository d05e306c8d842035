"""OPTIMIZE: the same rows in other files, concurrently with other writers."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from pyroaring import BitMap64

from dbt.adapters.silt.engine.commands.maintenance.optimize import Layout, Optimized, optimize
from dbt.adapters.silt.engine.commands.maintenance.vacuum import Retention, vacuum
from dbt.adapters.silt.engine.commands.rows import delete as delete_command
from dbt.adapters.silt.engine.commands.rows.file_rows import Rows
from dbt.adapters.silt.engine.commands.spark import errors
from dbt.adapters.silt.engine.commands.target import Target, WriteSettings
from dbt.adapters.silt.engine.kernel.clock import SystemClock
from dbt.adapters.silt.engine.kernel.errors import (
    ColumnNotFoundError,
    ConcurrentDeleteDeleteError,
    DataFileMissingError,
    UnsupportedStatementError,
)
from dbt.adapters.silt.engine.kernel.files import deletion_vectors
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.scan import skipping
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, RemoveFile
from dbt.adapters.silt.engine.kernel.table.expressions import And, Column, Comparison, Expression
from tests.faulty_store import Fault, FaultKind, FaultyStore
from tests.fixed_clock import FixedClock
from tests.unit.engine.commands.spark_tables import PLAIN, Tables
from tests.unit.engine.kernel.log_builder import put

HOUR = 3_600_000


def optimized(tables: Tables, log: DeltaLog, condition: str | None = None, *zorder_by: str) -> Optimized:
    layout = Layout("t", condition, tuple(tuple(name.split(".")) for name in zorder_by))
    return optimize(tables.spark, tables.target(log), layout, PLAIN)


def splintered(tables: Tables, parts: int = 4, **definition: Any) -> DeltaLog:
    """Creates a table of as many files as parts, or partitions of it."""
    query = "select /*+ coalesce(1) */ id, cast(id % 2 as string) as day from range({}, {})"
    log = tables.made(query.format(0, 10), **definition)
    for part in range(1, parts):
        tables.append(log, query.format(part * 10, part * 10 + 10))
    return log


def deleted(tables: Tables, log: DeltaLog, condition: str, predicate: Expression) -> None:
    target = Target(log.name, log, log.snapshot())
    delete_command.delete(tables.spark, target, Rows("t", condition, predicate), PLAIN)


def rewound(log: DeltaLog, clock: Callable[[], None]) -> DeltaLog:
    """Returns the table as another session sees it, which loses its next commit to another writer."""

    @dataclass
    class Meanwhile(FixedClock):
        def sleep(self, seconds: float) -> None:
            clock()

    faulty = FaultyStore(log.store, [Fault("put_if_absent", FaultKind.DELAY, times=1)], clock=Meanwhile())
    return DeltaLog(faulty, log.name, SystemClock())


def test_the_small_files_of_a_partition_become_one_file_and_no_row_changes(tables: Tables) -> None:
    log = splintered(tables, partition_columns=("day",))
    before = tables.rows(log)
    done = optimized(tables, log)
    assert (done.outcome.files_added, done.outcome.files_removed, done.partitions, done.bins) == (2, 8, 2, 2)
    assert tables.rows(log) == before
    (commit,) = log.commits(log.snapshot().version)
    files = [action for action in commit.actions if isinstance(action, AddFile | RemoveFile)]
    assert len(files) == 10 and not any(file.data_change for file in files)
    assert all(json.loads(add.stats or "")["numRecords"] == 20 for add in log.snapshot().add_files())
    info = tables.last_commit(log)
    assert (info.operation, info.isolation_level, info.is_blind_append) == ("OPTIMIZE", "SnapshotIsolation", False)
    assert dict(info.operation_parameters) == {"predicate": "[]", "zOrderBy": "[]", "clusterBy": "[]", "auto": False}
    metrics = {name: int(value) for name, value in (info.operation_metrics or {}).items()}
    assert (metrics["numAddedFiles"], metrics["numRemovedFiles"]) == (2, 8)
    assert metrics["minFileSize"] <= metrics["p50FileSize"] <= metrics["maxFileSize"] < metrics["numAddedBytes"]
    again = optimized(tables, log)
    assert (again.outcome.version, again.outcome.attempts, again.considered) == (done.outcome.version, 0, 2)


def test_a_condition_selects_partitions_and_may_name_no_other_column(tables: Tables) -> None:
    log = splintered(tables, parts=2, partition_columns=("day",))
    for condition in ("id = 1", "day = '1' and id > 3", "nope = 1"):
        with pytest.raises(UnsupportedStatementError, match="partition columns: `day`"):
            optimized(tables, log, condition)
    done = optimized(tables, log, "t.day between '1' and '2' -- only one")
    assert (done.considered, done.outcome.files_added, done.outcome.files_removed) == (2, 1, 2)
    with pytest.raises(UnsupportedStatementError, match="the table has no partition columns"):
        optimized(tables, tables.made("select 1 as id", "plain"), "id = 1")


def test_the_tables_target_size_is_used_and_the_unit_of_work_is_always_recorded(tables: Tables) -> None:
    log = splintered(tables, parts=4, properties={"delta.targetFileSize": "1kb"})
    size = max(add.size for add in log.snapshot().add_files())
    assert 500 < size < 1024
    unit = WriteSettings(txn=("nightly", 1))
    done = optimize(tables.spark, tables.target(log), Layout("t"), unit)
    assert (done.outcome.files_added, done.outcome.version) == (0, 4)
    assert log.snapshot().transaction_version("nightly") == 1


def test_rows_deleted_by_vectors_are_removed_from_the_files(tables: Tables) -> None:
    log = tables.made(
        "select /*+ coalesce(1) */ id from range(100)", properties={"delta.enableDeletionVectors": "true"}
    )
    vector = deletion_vectors.inline(BitMap64(range(0, 100, 10)))
    (whole,) = log.snapshot().add_files()
    put(log, 1, whole.remove(log.clock.now_ms()), replace(whole, data_change=True, deletion_vector=vector))
    before = tables.read(log).collect()
    done = optimized(tables, log)
    assert tables.read(log).collect() == before and len(before) == 90
    assert [add.deletion_vector for add in log.snapshot().add_files()] == [None]
    assert (done.vectors_removed, done.vector_rows_removed) == (1, 10)


def test_zorder_lets_queries_skip_files_by_each_of_its_columns(tables: Tables) -> None:
    columns = {
        "a": "cast(rand(1) * 10000 as int)",
        "b": "concat('https://silt.dev/', lpad(cast(cast(rand(2) * 10000 as int) as string), 5, '0'))",
        "c": "if(rand(3) < 0.1, null, date'2000-01-01' + cast(rand(4) * 10000 as int))",
        "d": "cast(rand(5) * 100 as decimal(10, 2))",
    }
    query = ", ".join(f"{text} as {name}" for name, text in columns.items())
    # So few rows that Spark's sample for the cuts between files holds every row: the cuts are the same each time.
    log = tables.made(f"select /*+ coalesce(1) */ id, {query} from range(0, 4000, 1, 2)")
    size = log.snapshot().size_in_bytes
    put_properties(tables, log, size // 16)
    before = tables.read(log).selectExpr("sum(hash(*))").collect()
    optimized(tables, log, None, "a", "b")
    snapshot = log.snapshot()
    assert 12 <= snapshot.num_files <= 20
    few = range_of("a", 5000, 5100), range_of("b", "https://silt.dev/05000", "https://silt.dev/05100")
    for predicate in few:
        assert skipping.prune(snapshot, predicate).num_rows <= snapshot.num_files * 0.6
    assert skipping.prune(snapshot, And(few)).num_rows == 2
    optimized(tables, log, None, "c", "d")
    snapshot = log.snapshot()
    nulls = [json.loads(add.stats or "")["nullCount"]["c"] for add in snapshot.add_files()]
    assert sum(count > 0 for count in nulls) <= snapshot.num_files * 0.6
    assert tables.read(log).selectExpr("sum(hash(*))").collect() == before
    assert dict(tables.last_commit(log).operation_parameters)["zOrderBy"] == '["c", "d"]'


def test_every_ordered_type_can_be_used_in_zorder(tables: Tables) -> None:
    types = {
        "tinyint": "id % 100",
        "double": "if(id = 0, double('NaN'), id)",
        "boolean": "id % 2 = 0",
        "binary": "cast(cast(id as string) as binary)",
        "timestamp": "timestamp_seconds(id * 1000000)",
        "timestamp_ntz": "timestamp_ntz'1960-01-01 00:00:00' + make_dt_interval(id)",
        "decimal(38, 18)": "id / 3",
    }
    query = ", ".join(f"cast({text} as {kind}) as c{place}" for place, (kind, text) in enumerate(types.items()))
    log = tables.made(
        f"select id, {query}, array(id) as r, named_struct('x', id) as s, id as unknown from range(300)",
        properties={"delta.dataSkippingNumIndexedCols": str(len(types) + 3)},
    )
    rows = tables.read(log).selectExpr("sum(hash(*))").collect()
    optimized(tables, log, None, *(f"c{place}" for place in range(len(types))), "s.x")
    assert tables.read(log).selectExpr("sum(hash(*))").collect() == rows
    for name, error in {"r": "cannot be sorted", "unknown": "no statistics", "s": "cannot be sorted"}.items():
        with pytest.raises(UnsupportedStatementError, match=error):
            optimized(tables, log, None, name)
    with pytest.raises(ColumnNotFoundError):
        optimized(tables, log, None, "nope")


def test_partition_columns_are_refused_by_name(tables: Tables) -> None:
    log = splintered(tables, parts=1, partition_columns=("day",))
    with pytest.raises(UnsupportedStatementError, match="`DAY` is a partition column"):
        optimized(tables, log, None, "DAY")


def test_bins_that_another_writer_changed_are_skipped_and_the_other_bins_are_committed(tables: Tables) -> None:
    log = splintered(tables, partition_columns=("day",))
    before = tables.rows(log)
    gone = And((Comparison("=", Column.of("day"), "1"), Comparison("=", Column.of("id"), 3)))
    slow = rewound(log, lambda: deleted(tables, log, "day = '1' and id = 3", gone))
    done = optimized(tables, slow)
    assert (done.outcome.files_removed, done.outcome.files_added, done.bins) == (4, 1, 1)
    assert tables.rows(log) == [row for row in before if row[0] != 3]
    assert tables.data_files(log) >= {add.path for add in log.snapshot().add_files()}


def test_if_every_bin_conflicts_nothing_is_committed_and_no_file_is_left_behind(tables: Tables) -> None:
    log = splintered(tables, parts=2)
    slow = rewound(log, lambda: deleted(tables, log, "id in (3, 13)", Comparison("<", Column.of("id"), 14)))
    with pytest.raises(ConcurrentDeleteDeleteError):
        optimized(tables, slow)
    known = {action.path for commit in log.commits() for action in commit.actions if isinstance(action, AddFile)}
    assert {name for name in tables.data_files(log) if name.endswith(".parquet")} <= known


def test_a_writer_that_read_the_rows_before_optimize_commits_after_it(tables: Tables) -> None:
    log = splintered(tables, parts=3)
    early = tables.target(log)
    optimized(tables, log)
    tables.append(log, "select 99L, '1'")
    other = Rows("t", "id = 1000", Comparison("=", Column.of("id"), 1000))
    assert delete_command.delete(tables.spark, early, other, WriteSettings(txn=("x", 1))).version == 5
    assert len(tables.rows(log)) == 31


def test_replaced_files_are_vacuumed_and_earlier_versions_then_name_the_missing_file(tables: Tables) -> None:
    log = splintered(tables, partition_columns=("day",))
    before = tables.rows(log)
    optimized(tables, log)
    left = log.clock.new_id()
    log.store.make_folder(f"{left}/_temporary/0")
    weeks_ago = time.time() - 30 * 86_400
    for folder, _, names in os.walk(log.store.root):
        for path in (*(os.path.join(folder, name) for name in names), folder):
            if "_delta_log" not in path:
                os.utime(path, (weeks_ago, weeks_ago))
    removed = vacuum(log, Retention(0, is_checked=False), PLAIN)
    assert len(removed.garbage.files) == 8
    assert tables.data_files(log) == {add.path for add in log.snapshot().add_files()}
    assert left not in log.store.list_folders("")
    assert tables.rows(log) == before
    old = log.snapshot_at(2)
    with pytest.raises(DataFileMissingError, match="VACUUM") as missing, errors.mapped():
        tables.read_at(log, old).collect()
    assert missing.value.version == (2 if tables.place.cloud is None else None)


def put_properties(tables: Tables, log: DeltaLog, target_size: int) -> None:
    metadata = log.snapshot().metadata
    configuration = {**metadata.configuration, "delta.targetFileSize": str(target_size)}
    put(log, log.snapshot().version + 1, type(metadata)(**{**vars(metadata), "configuration": configuration}))


def range_of(column: str, low: object, high: object) -> Expression:
    bounds = (Comparison(">=", Column.of(column), low), Comparison("<", Column.of(column), high))  # type: ignore[arg-type]
    return And(bounds)
