"""Versions of a table with row tracking are compared by the ids of their rows, without a key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.silt.engine.arrow.row_differences import row_differences
from dbt.adapters.silt.engine.arrow.table_diff import TableDiff, Version, diff_tables
from dbt.adapters.silt.engine.kernel.files import statistics
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.actions import AddFile
from dbt.adapters.silt.engine.kernel.transaction import commit
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from tests.unit.cli.house import ARROW, SCHEMA, House, rows

ID_COLUMN = "_row-id-col-1"
TRACKED = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": ID_COLUMN,
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col-1",
}


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


@pytest.fixture
def orders(house: House) -> DeltaLog:
    """Two files with the rows 0 to 4 and 5 to 9, whose ids are their numbers."""
    log = house.create("main.orders", rows(0, 5), TRACKED)
    house.append(log, rows(5, 5))
    return log


def rewrite(log: DeltaLog, file: int, content: Sequence[Mapping[str, Any]], ids: Sequence[int | None]) -> None:
    """Replaces a file by one that stores the ids of its rows, as an UPDATE does; a new row has none."""
    snapshot = log.snapshot()
    path = f"part-{log.clock.new_id()}.parquet"
    target = log.store.local_path(path)
    assert target is not None
    table = pa.Table.from_pylist([dict(each) for each in content], schema=ARROW)
    pq.write_table(table.append_column(ID_COLUMN, pa.array(ids, pa.int64())), target)
    stats = statistics.from_footers(log.store, [path], SCHEMA, snapshot.properties)[path]
    status = log.store.status(path)
    assert status is not None
    add = AddFile(path, {}, status.size, status.modified_ms, stats=stats.json)
    old = list(snapshot.add_files())[file]
    changes = Changes(Operation("UPDATE"), (add,), (old.remove(log.clock.now_ms()),))
    commit.commit(log, snapshot, changes, ReadSet(whole_table=True), commit.CommitSettings())


def compared(log: DeltaLog, before: int, after: int, samples: int = 0) -> TableDiff:
    old, new = (Version(log, log.snapshot_at(each)) for each in (before, after))
    return diff_tables(old, new, samples=samples)


def changed(content: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [{**each, "name": "new"} for each in content]


def test_a_changed_row_is_known_by_its_id_and_its_columns_are_counted(orders: DeltaLog) -> None:
    rewrite(orders, 0, [*changed(rows(0, 2)), *rows(3, 2), *rows(20, 1)], [0, 1, 3, 4, None])
    found = compared(orders, 1, 2, samples=1)
    assert (found.changed, found.removed, found.added) == (2, 1, 1)
    assert found.by_row_ids and not found.key and found.columns == {"name": 2}
    sample = next(each for each in found.samples if each.kind == "changed")
    assert sample.before is not None and sample.after is not None
    assert (sample.before["id"], sample.before["name"], sample.after["name"]) == (0, "name 0", "new")


def test_rows_that_move_to_other_files_are_equal(orders: DeltaLog) -> None:
    rewrite(orders, 0, rows(2, 3) + rows(0, 2), [2, 3, 4, 0, 1])
    assert compared(orders, 1, 2).is_equal


def test_a_deletion_vector_deletes_the_ids_of_its_rows(house: House, orders: DeltaLog) -> None:
    house.mark(orders, [1, 3])
    found = compared(orders, 1, 2, samples=5)
    assert (found.changed, found.removed, found.added) == (0, 2, 0)
    assert [each.before["id"] for each in found.samples if each.before] == [1, 3]


def test_rows_that_were_written_again_with_new_ids_are_equal(orders: DeltaLog) -> None:
    rewrite(orders, 1, rows(5, 5), [None] * 5)
    found = compared(orders, 1, 2)
    assert found.is_equal and found.by_row_ids


def test_of_two_equal_rows_the_row_with_the_id_has_changed() -> None:
    before, after = pa.table({"a": ["x", "x"]}), pa.table({"a": ["y", "x"]})
    found = row_differences(before, after, ids=(pa.array([1, 2]), pa.array([1, 2])))
    assert (found.changed, found.removed, found.added) == ([(0, 0)], [], [])


def test_two_tables_share_no_ids(house: House, orders: DeltaLog) -> None:
    other = house.create("main.others", changed(rows(0, 5)), TRACKED)
    found = diff_tables(Version(orders, orders.snapshot_at(0)), Version(other, other.snapshot()))
    assert (found.by_row_ids, found.removed, found.added) == (False, 5, 5)


def test_a_branch_shares_the_ids_of_its_table_and_two_branches_do_not(house: House, orders: DeltaLog) -> None:
    sides = []
    for name in ("one", "two"):
        known = house.catalog.named_branches("silt")
        known.create(name, "ann")
        log = house.catalog.on_branch("silt", known.join(name)).table(house.name("main.orders"))
        rewrite(log, 0, changed(rows(0, 5)), range(5))
        sides.append(Version(log, log.snapshot()))
    assert diff_tables(Version(orders, orders.snapshot()), sides[0]).changed == 5
    assert not diff_tables(sides[0], sides[1]).by_row_ids
