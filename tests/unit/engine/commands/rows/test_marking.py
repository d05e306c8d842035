"""DELETE and UPDATE of tables with deletion vectors."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from pyroaring import BitMap64

from dbt.adapters.silt.engine.commands.reading import scan
from dbt.adapters.silt.engine.commands.reading.positions import FILE, ROW, paths_by_report
from dbt.adapters.silt.engine.commands.rows import delete as delete_command
from dbt.adapters.silt.engine.commands.rows import marking
from dbt.adapters.silt.engine.commands.rows import update as update_command
from dbt.adapters.silt.engine.commands.rows.file_rows import Rows
from dbt.adapters.silt.engine.commands.target import Outcome, Target, WriteSettings
from dbt.adapters.silt.engine.kernel.errors import CheckViolationError, ConcurrentModificationError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.actions import AddFile
from dbt.adapters.silt.engine.kernel.table.expressions import UNKNOWN, Column, Comparison, Expression
from dbt.adapters.silt.engine.kernel.table.properties import IsolationLevel
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings
from dbt.adapters.silt.engine.sql.ast import Assignment
from tests.unit.engine.commands.spark_tables import PLAIN, VECTORS, Tables

LEVELS = (IsolationLevel.SERIALIZABLE, IsolationLevel.WRITE_SERIALIZABLE, IsolationLevel.SNAPSHOT)


def delete(
    tables: Tables,
    target: DeltaLog | Target,
    condition: str,
    predicate: Expression = UNKNOWN,
    settings: WriteSettings = PLAIN,
) -> Outcome:
    pinned = tables.target(target) if isinstance(target, DeltaLog) else target
    return delete_command.delete(tables.spark, pinned, Rows("t", condition, predicate), settings)


def update(
    tables: Tables, target: DeltaLog | Target, condition: str | None, settings: WriteSettings = PLAIN, **values: str
) -> Outcome:
    pinned = tables.target(target) if isinstance(target, DeltaLog) else target
    assignments = [Assignment((name,), value) for name, value in values.items()]
    return update_command.update(tables.spark, pinned, assignments, Rows("t", condition, UNKNOWN), settings)


def ids(tables: Tables, log: DeltaLog) -> list[int]:
    return sorted(row[0] for row in tables.rows(log))


def only_file(log: DeltaLog) -> AddFile:
    (add,) = log.snapshot().add_files()
    return add


def metrics(tables: Tables, log: DeltaLog) -> dict[str, str]:
    return dict(tables.last_commit(log).operation_metrics or {})


def ten(tables: Tables, **more: Any) -> DeltaLog:
    return tables.made("select id, concat('n', id) name from range(0, 10, 1, 1)", properties=VECTORS, **more)


def test_a_delete_writes_a_deletion_vector_and_no_data_file(tables: Tables) -> None:
    log = ten(tables)
    before = only_file(log)
    outcome = delete(tables, log, "id in (1, 4)")
    after = only_file(log)
    assert ids(tables, log) == [0, 2, 3, 5, 6, 7, 8, 9]
    assert (outcome.rows_deleted, outcome.files_added, outcome.files_removed) == (2, 0, 0)
    assert (after.path, after.size, after.tags) == (before.path, before.size, before.tags)
    assert after.deletion_vector is not None
    assert (after.deletion_vector.storage_type, after.deletion_vector.cardinality) == ("u", 2)
    assert json.loads(str(after.stats)) == {**json.loads(str(before.stats)), "tightBounds": False}
    found = metrics(tables, log)
    assert (found["numDeletedRows"], found["numCopiedRows"], found["numRemovedFiles"]) == ("2", "0", "0")
    assert (found["numDeletionVectorsAdded"], found["numDeletionVectorsUpdated"]) == ("1", "0")
    assert all(each.data_change for commit in log.commits(1) for each in commit.actions if isinstance(each, AddFile))


def test_a_second_delete_extends_the_vector_and_the_delete_of_the_last_rows_removes_the_file(tables: Tables) -> None:
    log = ten(tables)
    delete(tables, log, "id = 1")
    outcome = delete(tables, log, "id < 4")
    assert (outcome.rows_deleted, ids(tables, log)) == (3, [4, 5, 6, 7, 8, 9])
    vector = only_file(log).deletion_vector
    assert vector is not None and vector.cardinality == 4
    found = metrics(tables, log)
    assert [found[f"numDeletionVectors{what}"] for what in ("Added", "Removed", "Updated")] == ["0", "0", "1"]
    assert delete(tables, log, "name like 'n%'").rows_deleted == 6
    assert log.snapshot().num_files == 0 and ids(tables, log) == []
    found = metrics(tables, log)
    assert [found[f"numDeletionVectors{what}"] for what in ("Added", "Removed", "Updated")] == ["0", "1", "0"]
    assert (found["numDeletedRows"], found["numRemovedFiles"]) == ("6", "1")


def test_a_file_with_few_remaining_rows_is_rewritten(tables: Tables) -> None:
    log = ten(tables)
    delete(tables, log, "id = 0")
    outcome = delete(tables, log, "id <> 7")
    add = only_file(log)
    assert (outcome.rows_deleted, ids(tables, log)) == (8, [7])
    assert add.deletion_vector is None and json.loads(str(add.stats))["numRecords"] == 1
    found = metrics(tables, log)
    assert (found["numCopiedRows"], found["numRemovedFiles"], found["numDeletionVectorsRemoved"]) == ("1", "1", "1")


def test_whole_files_with_vectors_are_removed_without_a_job_and_their_remaining_rows_counted(tables: Tables) -> None:
    log = ten(tables)
    tables.append(log, "select id, 'm' name from range(100, 103, 1, 1)")
    delete(tables, log, "id in (3, 101)")
    outcome = delete(tables, log, "id < 50", Comparison("<", Column.of("id"), 50))
    assert (outcome.rows_deleted, outcome.files_removed) == (9, 1)
    assert ids(tables, log) == [100, 102]
    assert delete_command.delete(tables.spark, tables.target(log), Rows("t", None, UNKNOWN), PLAIN).rows_deleted == 2


def test_the_vectors_of_several_files_are_written_to_one_file(tables: Tables) -> None:
    log = tables.made("select id, id % 7 part from range(70)", partition_columns=("part",), properties=VECTORS)
    files = tables.data_files(log)
    outcome = delete(tables, log, "id < 21")
    assert outcome.rows_deleted == 21
    (vectors,) = tables.data_files(log) - files
    assert vectors.startswith("deletion_vector_")
    assert len({add.deletion_vector for add in log.snapshot().add_files()}) == 7
    assert ids(tables, log) == list(range(21, 70))


def test_an_update_writes_the_changed_rows_and_deletes_the_old_rows_by_a_vector(tables: Tables) -> None:
    log = ten(tables)
    before = only_file(log)
    outcome = update(tables, log, "id % 5 = 0", name="upper(name)", id="id + 100")
    assert (outcome.rows_updated, outcome.files_added, outcome.files_removed) == (2, 1, 0)
    assert tables.rows(log)[:2] == [(1, "n1"), (100, "N0")]
    assert ids(tables, log) == [1, 2, 3, 4, 6, 7, 8, 9, 100, 105]
    old, new = sorted(log.snapshot().add_files(), key=lambda add: add.path != before.path)
    assert old.deletion_vector is not None and new.deletion_vector is None
    assert json.loads(str(new.stats))["numRecords"] == 2
    found = metrics(tables, log)
    assert (found["numUpdatedRows"], found["numCopiedRows"], found["numDeletionVectorsAdded"]) == ("2", "0", "1")


def test_an_update_of_almost_all_rows_rewrites_the_file(tables: Tables) -> None:
    log = ten(tables)
    outcome = update(tables, log, "id > 0", name="'x'")
    assert (outcome.rows_updated, outcome.files_added, outcome.files_removed) == (9, 1, 1)
    assert tables.rows(log) == [(0, "n0"), *((each, "x") for each in range(1, 10))]
    assert metrics(tables, log)["numCopiedRows"] == "1"
    assert update(tables, log, None, name="'y'").rows_updated == 10
    assert {name for _, name in tables.rows(log)} == {"y"}


def test_the_deleted_rows_are_the_rewritten_rows_even_under_a_random_condition(tables: Tables) -> None:
    log = tables.made("select id, 0 v from range(0, 2000, 1, 2)", properties=VECTORS)
    outcome = update(tables, log, "rand() < 0.3", v="1")
    rows = tables.rows(log)
    assert sorted(row[0] for row in rows) == list(range(2000))
    assert sum(row[1] for row in rows) == outcome.rows_updated


def test_an_update_that_violates_a_constraint_leaves_no_files(tables: Tables) -> None:
    log = ten(tables, constraints={"small": "id < 100"})
    files = tables.data_files(log)
    with pytest.raises(CheckViolationError, match="1 row breaks"):
        update(tables, log, "id = 3", id="id + 100")
    assert tables.data_files(log) == files and log.snapshot().version == 0


def test_an_update_or_delete_without_matches_changes_nothing(tables: Tables) -> None:
    log = ten(tables)
    files = tables.data_files(log)
    assert (delete(tables, log, "id = 77").rows_deleted, update(tables, log, "id = 77", name="'x'").rows_updated) == (
        0,
        0,
    )
    assert log.snapshot().version == 0 and tables.data_files(log) == files


@pytest.mark.parametrize("level", LEVELS)
def test_of_two_writers_who_delete_rows_of_one_file_the_second_conflicts_and_leaves_no_files(
    tables: Tables, level: IsolationLevel
) -> None:
    log = ten(tables)
    settings = WriteSettings(commit=CommitSettings(isolation_level=level))
    pinned = tables.target(log)
    delete(tables, pinned, "id = 1", settings=settings)
    files = tables.data_files(log)
    with pytest.raises(ConcurrentModificationError):
        delete(tables, pinned, "id = 2", settings=settings)
    with pytest.raises(ConcurrentModificationError):
        update(tables, pinned, "id = 2", settings=settings, name="'x'")
    assert tables.data_files(log) == files
    assert ids(tables, log) == [0, 2, 3, 4, 5, 6, 7, 8, 9]


def test_writers_who_delete_rows_of_different_files_both_commit(tables: Tables) -> None:
    log = ten(tables)
    tables.append(log, "select id, 'm' name from range(100, 103, 1, 1)")
    pinned = tables.target(log)
    delete(tables, pinned, "id = 1", Comparison("=", Column.of("id"), 1))
    delete(tables, pinned, "id = 101", Comparison("=", Column.of("id"), 101))
    assert ids(tables, log) == [0, 2, 3, 4, 5, 6, 7, 8, 9, 100, 102]


def test_files_keep_their_vectors_after_the_table_disables_deletion_vectors(tables: Tables) -> None:
    log = ten(tables)
    delete(tables, log, "id = 1")
    snapshot = log.snapshot()
    assert marking.writes_deletion_vectors(snapshot)
    assert scan.read(tables.spark, log, snapshot).count() == 9


def test_positions_are_the_rows_positions_in_their_files(tables: Tables) -> None:
    log = tables.made("select id, id % 2 part from range(0, 3000, 1, 1)", partition_columns=("part",))
    snapshot = log.snapshot()
    frame = scan.read(tables.spark, log, snapshot, with_position=True)
    found = marking.positions(tables.target(log), frame.filter("id % 6 < 2"), snapshot.files)
    assert set(found) == set(snapshot.files["path"].to_pylist())
    paths = paths_by_report(log, snapshot.files)
    expected = {path: BitMap64() for path in paths.values()}
    for row in frame.filter("id % 6 < 2").collect():
        expected[paths[row[FILE]]].add(row[ROW])
    assert found == expected
    read_back = scan.read(tables.spark, log, snapshot, only=found).toArrow()
    assert sorted(read_back["id"].to_pylist()) == [each for each in range(3000) if each % 6 < 2]
    assert isinstance(read_back, pa.Table)
