"""Readable logs with truncated or lost commits: nothing is written to them, and readers are warned."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dbt.adapters.silt.engine.kernel.errors import CorruptLogError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.maintenance.log_check import check_log
from dbt.adapters.silt.engine.kernel.maintenance.problems import ProblemKind
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo, DeletionVector, SetTransaction, serialize
from dbt.adapters.silt.engine.kernel.table.paths import checksum_path, commit_path
from dbt.adapters.silt.engine.kernel.transaction import restore
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from dbt.adapters.silt.engine.kernel.transaction.restore import RestorePoint
from tests.unit.cli.house import House, rows
from tests.unit.engine.kernel.log_builder import METADATA, PROTOCOL, add, new_log, reopened


@pytest.fixture
def orders(tmp_path: Path) -> DeltaLog:
    """A table of three versions, the last of which records a transaction identifier."""
    house = House(tmp_path / "house")
    log = house.create("main.orders", rows(0, 10))
    house.append(log, rows(10, 10))
    house.append(log, rows(20, 10), ("nightly", 3))
    return log


def lines_of(log: DeltaLog, version: int) -> list[bytes]:
    return log.store.read(commit_path(version)).splitlines(keepends=True)


def cut(log: DeltaLog, version: int, kind: str) -> None:
    """Removes the lines of one kind of action from the commit, as if it were truncated at the end of a line."""
    other_lines = [line for line in lines_of(log, version) if not line.startswith(f'{{"{kind}"'.encode())]
    assert len(other_lines) < len(lines_of(log, version))
    log.store.put(commit_path(version), b"".join(other_lines))


def append(log: DeltaLog) -> None:
    changes = Changes(Operation("WRITE"), transactions=(SetTransaction("other", log.snapshot().version),))
    commit(log, log.snapshot(), changes, ReadSet(), CommitSettings())


@pytest.mark.parametrize(
    ("version", "kind", "said"),
    [(2, "add", "numFiles 3, but the log has 2"), (2, "txn", "the transaction identifier nightly")],
)
def test_a_commit_truncated_at_a_line_is_read_with_a_warning_and_writes_are_refused(
    orders: DeltaLog, caplog: pytest.LogCaptureFixture, version: int, kind: str, said: str
) -> None:
    cut(orders, version, kind)
    fresh = reopened(orders)
    with caplog.at_level(logging.WARNING):
        snapshot = fresh.snapshot()
    assert snapshot.doubt is not None and said in snapshot.doubt and "00000000000000000002.crc" in snapshot.doubt
    assert said in caplog.text and "`silt check`" in caplog.text
    with pytest.raises(CorruptLogError) as raised:
        append(fresh)
    assert "silt.main.orders@v2" in str(raised.value) and "`silt check`" in str(raised.value)
    assert fresh.snapshot().version == 2


def test_damage_before_a_commit_of_a_writer_that_did_not_see_it_is_found_too(orders: DeltaLog) -> None:
    orders.snapshot()
    cut(orders, 1, "add")
    append(orders)  # its snapshot was read before the damage
    with pytest.raises(CorruptLogError, match="numFiles 3, but the log has 2"):
        append(reopened(orders))
    problems = list(check_log(orders.store, orders.name))
    assert [(each.kind, each.version) for each in problems] == [
        (ProblemKind.CHECKSUM_DIFFERS, version) for version in (1, 1, 2, 2, 3, 3)
    ]


def test_a_lost_newest_commit_is_recognised_by_its_checksum(orders: DeltaLog) -> None:
    orders.store.delete(commit_path(2))
    fresh = reopened(orders)
    snapshot = fresh.snapshot()
    assert snapshot.version == 1
    assert snapshot.doubt is not None and "00000000000000000002.crc exists" in snapshot.doubt
    with pytest.raises(CorruptLogError, match=r"00000000000000000002\.crc exists"):
        append(fresh)
    (problem,) = check_log(orders.store, orders.name)
    assert (problem.kind, problem.version) == (ProblemKind.COMMIT_MISSING, 2)
    assert "the checksum exists, but the log ends before it" in problem.what


@pytest.mark.parametrize("damage", [lambda log: cut(log, 2, "add"), lambda log: log.store.delete(commit_path(2))])
def test_restoring_a_version_before_the_damage_ends_the_doubt(
    orders: DeltaLog, damage: Callable[[DeltaLog], None]
) -> None:
    damage(orders)
    fresh = reopened(orders)
    prepared = restore.prepare(fresh, fresh.snapshot(), RestorePoint(1))
    restore.commit(fresh, prepared, CommitSettings())
    append(reopened(orders))
    assert reopened(orders).snapshot().num_files == 2


def test_a_version_that_its_checksum_contradicts_is_not_restored(orders: DeltaLog) -> None:
    cut(orders, 1, "add")
    orders.store.delete(checksum_path(2))
    fresh = reopened(orders)
    with pytest.raises(CorruptLogError, match="numFiles 2, but the log has 1"):
        restore.prepare(fresh, fresh.snapshot(), RestorePoint(1))


def test_an_unreadable_or_differently_formatted_checksum_is_ignored(orders: DeltaLog) -> None:
    for content in (b"", b"no JSON", b"[]", b'{"numFiles":"3"}', b'{"metadata":{"id":1},"setTransactions":[7]}'):
        orders.store.put(checksum_path(2), content)
        assert reopened(orders).snapshot().doubt is None


def test_deleting_the_checksum_is_the_remedy_if_the_log_is_right(orders: DeltaLog) -> None:
    body = json.loads(orders.store.read(checksum_path(2)))
    orders.store.put(checksum_path(2), json.dumps({**body, "numFiles": 9}).encode())
    with pytest.raises(CorruptLogError, match="delete the checksum file"):
        append(reopened(orders))
    orders.store.delete(checksum_path(2))
    append(reopened(orders))


def test_a_re_created_table_is_not_doubted_because_of_the_earlier_tables_checksums(tmp_path: Path) -> None:
    house = House(tmp_path / "house")
    log = house.create("main.orders", rows(0, 10))
    house.append(log, rows(10, 10))
    house.catalog.drop_table(house.name("main.orders"))
    again = house.create("main.orders", rows(0, 3))
    assert again.snapshot().doubt is None
    assert reopened(again).snapshot().doubt is None
    shutil.rmtree(tmp_path / "house")


@pytest.mark.parametrize("content", [b"", b"\n", b" \n\n"])
def test_a_commit_without_any_action_is_damaged(content: bytes) -> None:
    log = new_log()
    log.store.put(commit_path(1), content)
    with pytest.raises(CorruptLogError, match="it is empty"):
        log.snapshot()


OLD, NEW = (DeletionVector("u", name, 40, 1, 1) for name in ("old", "new"))


@pytest.mark.parametrize(
    ("actions", "said"),
    [
        ((add("a"), add("a").remove(1)), "both adds and removes a"),
        ((add("a%20b").remove(1), add("a b")), "both adds and removes a"),
        ((replace(add("a"), deletion_vector=OLD), replace(add("a"), deletion_vector=NEW)), "more than one deletion"),
        ((METADATA, METADATA), "more than one `metaData`"),
        ((PROTOCOL, PROTOCOL), "more than one `protocol`"),
    ],
)
def test_a_commit_that_contradicts_itself_is_damaged(actions: tuple[object, ...], said: str) -> None:
    log = new_log()
    log.store.put(commit_path(1), serialize((CommitInfo(), *actions)))  # type: ignore[arg-type]
    with pytest.raises(CorruptLogError, match=said):
        log.snapshot()


def test_a_commit_may_remove_and_add_a_file_to_change_its_deletion_vector(tmp_path: Path) -> None:
    house = House(tmp_path / "house")
    log = house.create("main.orders", rows(0, 10), {"delta.enableDeletionVectors": "true"})
    house.mark(log, [2])
    assert reopened(log).snapshot().num_files == 1
    assert list(check_log(log.store, log.name)) == []
