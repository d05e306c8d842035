"""Undoing a unit of work in all tables that it changed."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from typing import TypeVar

import pytest

from dbt.adapters.silt.engine.catalog import rollback
from dbt.adapters.silt.engine.catalog.rollback import PutBack, Rollback
from dbt.adapters.silt.engine.kernel.errors import ConcurrentModificationError, RollbackRefusedError, StorageError
from dbt.adapters.silt.engine.kernel.maintenance import vacuum
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.actions import SetTransaction
from dbt.adapters.silt.engine.kernel.table.paths import commit_path
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructField, StructType
from dbt.adapters.silt.engine.kernel.transaction import restore
from dbt.adapters.silt.engine.kernel.transaction.changes import ENGINE_INFO
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings
from dbt.adapters.silt.engine.kernel.transaction.restore import RestorePoint
from tests.faulty_store import Fault, FaultKind, FaultyStore
from tests.memory_store import MemoryStore
from tests.unit.engine.catalog.units_of_work import Works, named, settings_of, work_of

T = TypeVar("T")

BEFORE = {"orders": {1: 10, 2: 20}, "payments": {1: 1}, "untouched": {1: 7}}


@pytest.fixture
def works() -> Works:
    """Three tables of A; B appends twice to one of them, and changes another."""
    works = Works()
    _build_before(works)
    _run_b(works)
    return works


def _build_before(works: Works) -> None:
    for identifier, rows in BEFORE.items():
        works.create(identifier, "A", rows)


def _run_b(works: Works) -> None:
    works.append("orders", "B", {3: 30}, "first")
    works.append("orders", "B", {4: 40}, "second")
    works.append("payments", "B", {5: 50})


def _rewrite(works: Works, identifier: str, version: int, old: str, new: str) -> Works:
    """The warehouse after another writer's commit."""
    store, path = works.log(identifier).store, commit_path(version)
    text = store.read(path).decode()
    assert old in text
    store.put(path, text.replace(old, new).encode())
    return works.reopened(9)


def _restore(works: Works, identifier: str, point: RestorePoint, author: str = "somebody") -> None:
    log = works.log(identifier)
    prepared = restore.prepare(log, log.snapshot(), point)
    restore.commit(log, prepared, works.table(identifier, author).settings)


def test_every_table_that_the_work_changed_is_restored_to_its_state_before_the_work(works: Works) -> None:
    done = works.roll_back("B")
    assert works.rows() == BEFORE
    assert done == Rollback(
        (PutBack(named("orders"), 2, 0, 3, 2), PutBack(named("payments"), 1, 0, 2, 1)), dropped=(), kept=()
    )
    assert works.versions() == {"orders": 3, "payments": 2, "untouched": 0}


def test_units_of_the_work_are_forgotten_so_that_it_can_be_repeated(works: Works) -> None:
    after = works.rows()
    works.roll_back("B")
    assert [works.unit("orders", "B", unit) for unit in ("first", "second")] == [-1, -1]
    _run_b(works)
    assert works.rows() == after


def test_a_second_rollback_finds_nothing_to_undo(works: Works) -> None:
    works.roll_back("B")
    versions = works.versions()
    assert works.roll_back("B") == Rollback()
    assert works.find("B").known
    assert works.versions() == versions


def test_rolling_back_unknown_work_is_an_error(works: Works) -> None:
    assert not works.find("C").known


def test_of_repeated_work_only_the_repetition_is_undone(works: Works) -> None:
    works.roll_back("B")
    works.append("orders", "C", {9: 90})
    _run_b(works)
    works.roll_back("B")
    assert works.rows() == BEFORE | {"orders": {1: 10, 2: 20, 9: 90}}


def test_schema_properties_and_comment_are_restored_with_the_rows(works: Works) -> None:
    before = works.log("orders").snapshot().metadata
    wider = StructType((*works.log("orders").snapshot().schema, StructField("note", PrimitiveType("string"))))
    changed = replace(before, schema_string=wider.to_json(), description="of B", configuration={"note": "B"})
    works.say("orders", "B", "CREATE OR REPLACE TABLE AS SELECT", metadata=changed)
    works.roll_back("B")
    assert works.log("orders").snapshot().metadata == before


def test_a_renamed_table_is_rolled_back_under_its_current_name(works: Works) -> None:
    works.catalog.rename(named("payments"), named("receipts"))
    works.roll_back("B")
    assert works.rows()["receipts"] == BEFORE["payments"]


# Later changes by other writers


def test_a_rollback_is_refused_if_other_writers_changed_tables_later_and_names_all_these_tables(works: Works) -> None:
    works.append("orders", "C", {6: 60})
    works.double("orders", "D")
    works.describe("payments", "E", "a comment")
    versions = works.versions()
    with pytest.raises(
        RollbackRefusedError, match="nothing was changed: other writers have changed 2 tables"
    ) as caught:
        works.roll_back("B")
    assert works.versions() == versions
    commits = caught.value.details["later_commits"]
    assert [(each["table"], each["version"], each["operation"], each["author"]) for each in commits] == [
        ("silt.main.orders", 3, "WRITE", "C"),
        ("silt.main.orders", 4, "UPDATE", "D"),
        ("silt.main.payments", 2, "SET TBLPROPERTIES", "E"),
    ]
    assert "silt.main.orders@v4: UPDATE by D, 20" in str(caught.value)


def test_a_change_of_another_writer_between_two_commits_of_the_work_counts() -> None:
    works = Works()
    works.create("orders", "A", {1: 10})
    works.append("orders", "B", {2: 20}, "first")
    works.append("orders", "C", {3: 30})
    works.append("orders", "B", {4: 40}, "second")
    with pytest.raises(RollbackRefusedError):
        works.roll_back("B")


def test_earlier_changes_and_commits_without_changes_of_data_do_not_count(works: Works) -> None:
    works.table("orders", "C").compact()
    works.say("orders", "C", vacuum.START)
    works.say("orders", "C", vacuum.END)
    works.say("payments", "C", "MERGE", transactions=(SetTransaction("C/payments/main", 1),))
    works.roll_back("B")
    assert works.rows() == BEFORE
    assert works.unit("payments", "C") == -1, "it found nothing to do beside rows that are gone"


def test_later_changes_of_other_writers_are_undone_on_request(works: Works) -> None:
    works.append("orders", "C", {6: 60})
    done = works.roll_back("B", discard_later_commits=True)
    assert works.rows() == BEFORE
    assert [len(each.discarded) for each in done.put_back] == [1, 0]
    assert works.unit("orders", "C") == -1


def test_later_work_that_was_rolled_back_does_not_block_the_rollback(works: Works) -> None:
    works.append("orders", "C", {6: 60})
    works.roll_back("C")
    works.roll_back("B")
    assert works.rows() == BEFORE


def test_a_table_that_was_restored_by_hand_needs_no_rollback(works: Works) -> None:
    _restore(works, "orders", RestorePoint(0))
    moment = datetime.fromtimestamp(works.log("payments").snapshot_at(0).timestamp / 1000, timezone.utc)
    _restore(works, "payments", RestorePoint(0, moment.isoformat(" ", "milliseconds")))
    works.append("orders", "C", {6: 60})
    assert works.roll_back("B") == Rollback()


def test_a_restore_that_undid_only_the_second_commit_leaves_the_first_to_roll_back(works: Works) -> None:
    _restore(works, "orders", RestorePoint(1))
    works.roll_back("B")
    assert works.rows() == BEFORE


def test_a_restore_that_belongs_to_the_work_is_undone(works: Works) -> None:
    _restore(works, "orders", RestorePoint(1), "F")
    rows = works.rows()
    works.roll_back("F")
    assert works.rows() == rows | {"orders": {1: 10, 2: 20, 3: 30, 4: 40}}


def test_another_engines_restore_which_forgets_no_unit_counts_as_a_change(works: Works) -> None:
    log = works.log("orders")
    prepared = restore.prepare(log, log.snapshot(), RestorePoint(0))
    restore.commit(log, replace(prepared, changes=replace(prepared.changes, forgotten=())), CommitSettings())
    works = _rewrite(works, "orders", 3, ENGINE_INFO, "Apache-Spark/4.0.0 Delta-Lake/4.0.0")
    with pytest.raises(RollbackRefusedError):
        works.roll_back("B")
    works.roll_back("B", discard_later_commits=True)
    assert works.unit("orders", "B", "first") == -1


# Tables that the work created


def test_tables_created_by_the_work_are_named_and_kept(works: Works) -> None:
    works.create("made", "B", {1: 1})
    assert works.roll_back("B").kept == (named("made"),)
    assert works.rows() == BEFORE | {"made": {1: 1}}
    assert works.roll_back("B").kept == (named("made"),)


def test_tables_created_by_the_work_are_dropped_on_request(works: Works) -> None:
    works.create("made", "B", {1: 1})
    works.append("made", "B", {2: 2})
    assert works.roll_back("B", drop_created=True).dropped == (named("made"),)
    assert works.rows() == BEFORE


def test_a_created_table_that_other_writers_changed_is_dropped_only_on_request(works: Works) -> None:
    works.create("made", "B", {1: 1})
    works.append("made", "C", {2: 2})
    with pytest.raises(RollbackRefusedError, match=r"silt\.main\.made@v1"):
        works.roll_back("B", drop_created=True)
    assert works.roll_back("B").kept == (named("made"),)
    works.roll_back("B", drop_created=True, discard_later_commits=True)
    assert works.rows() == BEFORE


def test_files_that_existed_before_the_work_converted_them_to_a_table_are_never_deleted(works: Works) -> None:
    works.create("made", "B", {1: 1})
    works = _rewrite(works, "made", 0, '"CREATE TABLE"', '"CONVERT"')
    with pytest.raises(RollbackRefusedError, match="which a drop would delete"):
        works.roll_back("B", drop_created=True)
    assert "made" in works.rows()


def test_a_drop_applies_only_to_the_version_that_was_checked(works: Works) -> None:
    works.create("made", "B", {1: 1})
    findings = works.find("B")
    works.reopened(2).append("made", "C", {2: 2})
    with pytest.raises(ConcurrentModificationError, match=r"had been rolled back, and silt\.main\.made not yet"):
        rollback.roll_back(works.catalog, findings, work_of("B"), settings_of("B", drop_created=True))
    assert works.reopened(3).rows() == BEFORE | {"made": {1: 1, 2: 2}}


@pytest.mark.parametrize(("operation", "path"), [("put", "made/_drop.json"), ("list_from", "made/_delta_log")])
def test_a_commit_at_any_moment_before_the_drop_makes_the_drop_fail(works: Works, operation: str, path: str) -> None:
    works.create("made", "B", {1: 1})
    findings = works.find("B")
    append = functools.partial(works.reopened(2).append, "made", "C", {2: 2})
    beside = Works(Beside(works.store, operation, path, append), seed=3)
    with pytest.raises(ConcurrentModificationError, match="so it was not dropped"):
        beside.catalog.drop_table(named("made"), version=findings.created[0].base.version)
    assert works.reopened(4).rows()["made"] == {1: 1, 2: 2}


# What cannot be undone


def test_all_problems_of_all_tables_are_found_before_anything_is_written(works: Works) -> None:
    (lost,) = works.log("untouched").snapshot().files["path"].to_pylist()
    works.double("untouched", "B")
    works.log("untouched").store.delete(lost)
    works.append("orders", "C", {6: 60})
    versions = works.versions()
    with pytest.raises(RollbackRefusedError) as caught:
        works.roll_back("B")
    assert works.versions() == versions
    assert [each["table"] for each in caught.value.details["later_commits"]] == ["silt.main.orders"]
    assert [(each["table"], each["code"]) for each in caught.value.details["problems"]] == [
        ("silt.main.untouched", "SILT_DATA_FILE_MISSING")
    ]


def test_rows_are_not_removed_from_a_table_that_was_append_only_before_the_work() -> None:
    works = Works()
    works.create("locked", "A", {1: 1})
    metadata = replace(works.log("locked").snapshot().metadata, configuration={"delta.appendOnly": "true"})
    works.say("locked", "A", "SET TBLPROPERTIES", metadata=metadata)
    works.append("locked", "B", {2: 2})
    with pytest.raises(RollbackRefusedError, match="append-only"):
        works.roll_back("B")


@pytest.mark.parametrize("cleaned", [2, 3])
def test_work_whose_commits_were_cleaned_up_is_recognised_by_its_units_and_cannot_be_undone(cleaned: int) -> None:
    works = Works()
    works.create("orders", "A", {1: 10})
    works.append("orders", "B", {2: 20}, "first")
    works.append("orders", "B", {3: 30}, "second")
    works.append("orders", "A", {4: 40})
    log = works.log("orders")
    log.checkpoint(log.snapshot_at(cleaned - 1))
    for version in range(cleaned):
        log.store.delete(commit_path(version))
    with pytest.raises(RollbackRefusedError, match="cleaned up from the log"):
        works.reopened(2).roll_back("B", discard_later_commits=True)


def test_an_unreadable_log_blocks_the_rollback_until_its_table_is_excluded(works: Works) -> None:
    log = works.log("untouched")
    log.store.put(commit_path(0), b"{not json")
    with pytest.raises(RollbackRefusedError, match=r"silt\.main\.untouched"):
        works.reopened(2).roll_back("B")


# Concurrent changes


def test_a_writer_between_check_and_commit_wins_and_the_finished_tables_are_named(works: Works) -> None:
    findings = works.find("B")
    works.reopened(2).append("payments", "C", {6: 60})
    with pytest.raises(ConcurrentModificationError) as caught:
        rollback.roll_back(works.catalog, findings, work_of("B"), settings_of("B"))
    assert "of run B, silt.main.orders had been rolled back, and silt.main.payments not yet" in str(caught.value)
    assert works.reopened(3).rows() == BEFORE | {"payments": {1: 1, 5: 50, 6: 60}}
    with pytest.raises(RollbackRefusedError, match=r"silt\.main\.payments@v2"):
        works.roll_back("B")
    works.roll_back("B", discard_later_commits=True)
    assert works.rows() == BEFORE


class Beside(FaultyStore):
    """Runs an action of another writer once, after an operation on one path."""

    def __init__(self, inner: Store, operation: str, path: str, act: Callable[[], None]) -> None:
        super().__init__(inner)
        self.operation, self.path, self.acts = operation, path, [act]

    def around(self, operation: str, path: str, run: Callable[[], T]) -> T:
        result = super().around(operation, path, run)
        if self.acts and operation == self.operation and f"{self.root}/{path}".endswith(self.path):
            self.acts.pop()()
        return result


def test_commits_of_the_work_during_its_rollback_are_noticed(works: Works) -> None:
    rerun = functools.partial(works.reopened(2).append, "orders", "B", {3: 30}, "first")
    beside = Works(Beside(works.store, "put_if_absent", f"payments/{commit_path(2)}", rerun), seed=3)
    with pytest.raises(ConcurrentModificationError, match=r"run B continued .* changed silt\.main\.orders again"):
        beside.roll_back("B")
    works.roll_back("B")
    assert works.rows() == BEFORE


@pytest.mark.parametrize("kind", [FaultKind.FAIL_BEFORE, FaultKind.FAIL_AFTER])
def test_a_rollback_that_failed_at_any_step_is_finished_by_repeating_it(kind: FaultKind) -> None:
    for skip in range(400):
        memory = MemoryStore()
        works = Works(memory)
        _build_before(works)
        works.create("made", "B", {1: 1})
        _run_b(works)
        fault = Fault("p*", kind, skip=skip, times=1)
        store = FaultyStore(memory)
        failing = Works(store, seed=2)
        store.faults.append(fault)
        with contextlib.suppress(StorageError, RollbackRefusedError):
            failing.roll_back("B", drop_created=True)
        again = works.reopened(3)
        again.roll_back("B", drop_created=True)
        assert again.rows() == BEFORE, skip
        assert again.unit("orders", "B", "first") == -1
        if fault.times:
            assert skip > 5
            return
    pytest.fail("the steps did not end")


class Killed(BaseException):
    """Simulates the end of the process: the code under test does not catch it."""


class Mortal(FaultyStore):
    """Ends the process before or after its n-th change."""

    def __init__(self, inner: Store, left: list[int], after: bool) -> None:
        super().__init__(inner)
        self.left, self.after = left, after

    def around(self, operation: str, path: str, run: Callable[[], T]) -> T:
        if operation not in ("put", "put_if_absent", "delete", "rename_folder", "delete_folder"):
            return super().around(operation, path, run)
        self.left[0] -= 1
        if self.left[0] == 0 and not self.after:
            raise Killed
        result = super().around(operation, path, run)
        if self.left[0] == 0:
            raise Killed
        return result


@pytest.mark.parametrize("after", [False, True])
def test_a_rollback_killed_at_any_step_is_finished_by_repeating_it(after: bool) -> None:
    for step in range(1, 100):
        memory = MemoryStore()
        works = Works(memory)
        _build_before(works)
        works.create("made", "B", {1: 1})
        _run_b(works)
        left = [step]
        with contextlib.suppress(Killed):
            Works(Mortal(memory, left, after), seed=2).roll_back("B", drop_created=True)
        again = works.reopened(3)
        again.roll_back("B", drop_created=True)
        assert again.rows() == BEFORE, step
        assert again.versions() == {"orders": 3, "payments": 2, "untouched": 0}, "each table went back once"
        if left[0] > 0:
            assert step > 5
            return
    pytest.fail("the steps did not end")
