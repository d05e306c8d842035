"""DELETE: the deleted rows, and the files that it opens and rewrites."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.commands.rows import delete as command
from dbt.adapters.silt.engine.commands.rows.file_rows import Limits, Rows
from dbt.adapters.silt.engine.commands.target import Outcome, Target, WriteSettings
from dbt.adapters.silt.engine.kernel.errors import ConcurrentModificationError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE, UNKNOWN, Column, Comparison, Expression, In
from dbt.adapters.silt.engine.kernel.table.properties import IsolationLevel
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings
from tests.unit.engine.commands.spark_tables import PLAIN, Tables

ROWS = "select * from values (1, 'a'), (2, 'b'), (3, null), (null, 'd') as x(id, name)"
SEARCH_FIRST = Limits(at_once=-1)


def delete(
    tables: Tables,
    target: DeltaLog | Target,
    condition: str | None,
    predicate: Expression = UNKNOWN,
    settings: WriteSettings = PLAIN,
    limits: Limits | None = None,
) -> Outcome:
    pinned = tables.target(target) if isinstance(target, DeltaLog) else target
    return command.delete(tables.spark, pinned, Rows("t", condition, predicate), settings, limits)


@pytest.mark.parametrize("limits", [None, SEARCH_FIRST])
def test_rows_whose_condition_is_null_are_kept(tables: Tables, limits: Limits | None) -> None:
    log = tables.made(ROWS)
    outcome = delete(tables, log, "t.id > 1 -- of the first two", limits=limits)
    assert tables.rows(log) == [(1, "a"), (None, "d")]
    assert outcome.rows_deleted == 2
    info = tables.last_commit(log)
    assert info.operation == "DELETE" and info.is_blind_append is False
    assert info.operation_parameters == {"predicate": '["t.id > 1 -- of the first two"]'}
    assert info.operation_metrics is not None
    assert info.operation_metrics["numDeletedRows"] == "2"


def test_a_delete_of_the_whole_table_removes_all_files(tables: Tables) -> None:
    log = tables.made(ROWS)
    tables.append(log, "values (5, 'e')")
    outcome = delete(tables, log, None, TRUE)
    assert tables.rows(log) == []
    assert (outcome.rows_deleted, outcome.files_added) == (5, 0)
    assert log.snapshot().num_files == 0


def test_a_delete_of_whole_partitions_or_files_runs_no_spark_job(tables: Tables) -> None:
    log = tables.made("select id, id % 3 part from range(9)", partition_columns=("part",))
    plain = tables.made("select id from range(5)", name="plain")
    tables.append(plain, "select id from range(10, 12, 1, 1)")
    # a Spark Connect server does not report its jobs
    with no_jobs(tables.spark) if isinstance(tables.spark, SparkSession) else nullcontext():
        of_partitions = delete(tables, log, "part in (0, 2)", In(Column.of("part"), (0, 2)))
        by_statistics = delete(tables, plain, "id >= 10", Comparison(">=", Column.of("id"), 10))
    assert (of_partitions.rows_deleted, of_partitions.files_added) == (6, 0)
    assert (by_statistics.rows_deleted, by_statistics.files_removed) == (2, 1)
    assert tables.rows(log) == [(1, 1), (4, 1), (7, 1)]
    assert tables.rows(plain) == [(each,) for each in range(5)]


def test_files_that_cannot_match_are_neither_opened_nor_rewritten(tables: Tables) -> None:
    log = tables.made("select id from range(0, 3, 1, 1)")
    tables.append(log, "select id from range(10, 13, 1, 1)")
    before = {add.path for add in log.snapshot().add_files()}
    outcome = delete(tables, log, "id = 11", Comparison("=", Column.of("id"), 11))
    assert (outcome.files_removed, outcome.files_added, outcome.files_skipped) == (1, 1, 1)
    assert len(before & {add.path for add in log.snapshot().add_files()}) == 1
    assert tables.rows(log) == [(0,), (1,), (10,), (12,), (2,)]


def test_files_without_a_matching_row_are_searched_and_not_rewritten(tables: Tables) -> None:
    log = tables.made("select id, 'a' name from range(0, 3, 1, 1)")
    tables.append(log, "select id, 'b' name from range(0, 3, 1, 1)")
    outcome = delete(tables, log, "upper(name) = 'B' and id = 1", limits=SEARCH_FIRST)
    assert (outcome.rows_deleted, outcome.files_removed, outcome.files_added) == (1, 1, 1)
    assert outcome.files_skipped == 0


def test_a_condition_may_contain_subqueries_over_other_tables_and_the_table_itself(tables: Tables) -> None:
    log = tables.made(ROWS)
    tables.spark.sql("select 1 id union all select 2").createOrReplaceTempView("`main.gone@v3`")
    tables.read(log).createOrReplaceTempView("`main.orders@v0`")
    inside = "t.id in (select id from `main.gone@v3`) and id <= (select avg(id) from `main.orders@v0`)"
    assert delete(tables, log, inside).rows_deleted == 2
    correlated = "exists (select 1 from `main.orders@v0` o where o.name = t.name and t.id is null)"
    assert delete(tables, log, correlated).rows_deleted == 1
    assert tables.rows(log) == [(3, None)]


@pytest.mark.parametrize("limits", [None, SEARCH_FIRST])
def test_a_delete_without_changes_commits_only_with_a_transaction_or_under_write_serializable(
    tables: Tables, limits: Limits | None
) -> None:
    log = tables.made(ROWS)
    files = tables.data_files(log)
    outcome = delete(tables, log, "id = 99", limits=limits)
    assert (outcome.version, outcome.rows_deleted, outcome.files_added) == (0, 0, 0)
    assert log.snapshot().version == 0 and tables.data_files(log) == files
    write_serializable = WriteSettings(commit=CommitSettings(isolation_level=IsolationLevel.WRITE_SERIALIZABLE))
    assert delete(tables, log, "id = 99", settings=write_serializable, limits=limits).version == 1
    assert delete(tables, log, "id = 99", settings=WriteSettings(txn=("app", 4)), limits=limits).version == 2
    assert log.snapshot().transaction_version("app") == 4


def test_concurrent_deletes_conflict_only_in_the_same_file(tables: Tables) -> None:
    log = tables.made("select id from range(0, 3, 1, 1)")
    tables.append(log, "select id from range(10, 13, 1, 1)")
    pinned = tables.target(log)
    delete(tables, pinned, "id = 1", Comparison("=", Column.of("id"), 1))
    delete(tables, pinned, "id = 11", Comparison("=", Column.of("id"), 11))
    assert tables.rows(log) == [(0,), (10,), (12,), (2,)]
    files = tables.data_files(log)
    with pytest.raises(ConcurrentModificationError):
        delete(tables, pinned, "id = 12", Comparison("=", Column.of("id"), 12))
    assert tables.data_files(log) == files


class no_jobs:
    """Fails if Spark runs a job inside the block."""

    def __init__(self, spark: SparkSession) -> None:
        self._tracker = spark.sparkContext.statusTracker()
        self._context = spark.sparkContext

    def __enter__(self) -> None:
        self._context.setJobGroup("no-jobs", "none is to run")

    def __exit__(self, *error: object) -> None:
        jobs = list(self._tracker.getJobIdsForGroup("no-jobs"))
        self._context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
        assert jobs == []
