"""RESTORE: the files, properties and transaction identifiers of the new version."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dbt.adapters.silt.engine.commands.maintenance.restore import restore
from dbt.adapters.silt.engine.commands.target import Outcome, Target, WriteSettings
from dbt.adapters.silt.engine.kernel.errors import (
    ConcurrentModificationError,
    ConcurrentTransactionError,
    DataFileMissingError,
    UnsupportedStatementError,
    VersionNotFoundError,
)
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.maintenance import vacuum
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.table import column_mapping
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, CommitInfo, DeletionVector, Protocol, SetTransaction
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructField, StructType
from dbt.adapters.silt.engine.kernel.transaction import commit as transaction
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.restore import RestorePoint
from tests.fixed_clock import FixedClock
from tests.memory_store import MemoryStore
from tests.simulation.rows_table import Writer

DAY_MS = 86_400_000


@pytest.fixture
def bank() -> Writer:
    """Version 0 has the rows 1 and 2; version 1 adds 3, version 2 doubles 1, and each records a unit of work."""
    clock = FixedClock(seed=1)
    bank = Writer(MemoryStore(clock), seed=1)
    bank.log = DeltaLog(bank.log.store, bank.log.name, clock)
    bank.create({1: 10}, {2: 20})
    bank.append({3: 30}, SetTransaction("append", 1))
    bank.rewrite(TRUE, lambda key, amount: amount * 2 if key == 1 else amount)
    return bank


def restored(bank: Writer, version: int, txn: tuple[str, int] | None = None) -> Outcome:
    target = Target(bank.log.name, bank.log, bank.log.snapshot())
    return restore(target, RestorePoint(version), WriteSettings(txn=txn))


def change(log: DeltaLog, **parts: object) -> None:
    changes = Changes(Operation("SET TBLPROPERTIES"), **parts)  # type: ignore[arg-type]
    transaction.commit(log, log.snapshot(), changes, ReadSet(), transaction.CommitSettings())


def note(log: DeltaLog, operation: str) -> None:
    """Commits an operation without changes."""
    transaction.commit(log, log.snapshot(), Changes(Operation(operation)), ReadSet(), transaction.CommitSettings())


def last_commit(log: DeltaLog) -> CommitInfo:
    (commit,) = log.commits(log.snapshot().version)
    (info,) = [action for action in commit.actions if isinstance(action, CommitInfo)]
    return info


def test_the_rows_of_an_earlier_version_are_restored_as_a_new_version(bank: Writer) -> None:
    outcome = restored(bank, 1)
    assert bank.rows() == {1: 10, 2: 20, 3: 30}
    assert (outcome.version, outcome.files_added, outcome.files_removed) == (3, 1, 1)
    assert restored(bank, 2).version == 4
    assert bank.rows() == {1: 20, 2: 20, 3: 30}


def test_the_history_states_the_restored_version(bank: Writer) -> None:
    restored(bank, 0)
    info = last_commit(bank.log)
    assert (info.operation, info.operation_parameters) == ("RESTORE", {"version": 0, "timestamp": None})
    assert info.operation_metrics is not None
    assert {name: int(value) for name, value in info.operation_metrics.items() if name.startswith("num")} == {
        "numOfFilesAfterRestore": 2,
        "numRemovedFiles": 2,
        "numRestoredFiles": 1,
    }
    assert (info.read_version, info.is_blind_append, info.isolation_level) == (2, False, "Serializable")


def test_a_restored_table_equals_the_version_in_every_file_and_property(bank: Writer) -> None:
    base = bank.log.snapshot()
    wider = StructType((*base.schema, StructField("note", PrimitiveType("string"))))
    metadata = replace(base.metadata, schema_string=wider.to_json(), configuration={"delta.appendOnly": "false"})
    change(bank.log, metadata=replace(metadata, description="later"))
    restored(bank, 1)
    then, now = bank.log.snapshot_at(1), bank.log.snapshot()
    assert now.metadata == then.metadata
    assert sorted(now.files.to_pylist(), key=repr) == sorted(then.files.to_pylist(), key=repr)


def test_restoring_the_newest_version_changes_nothing(bank: Writer) -> None:
    assert (restored(bank, 2).version, bank.log.snapshot().version) == (2, 2)
    assert restored(bank, 2, txn=("restore", 1)).version == 3


def test_restoring_a_missing_version_is_an_error(bank: Writer) -> None:
    with pytest.raises(VersionNotFoundError):
        restored(bank, 7)


# Units of work after a restore


def test_units_committed_after_the_restored_version_are_forgotten_and_earlier_units_are_kept(bank: Writer) -> None:
    bank.append({4: 40}, SetTransaction("later", 2))
    restored(bank, 1)
    snapshot = bank.log.snapshot()
    assert (snapshot.transaction_version("append"), snapshot.transaction_version("later")) == (1, -1)


def test_forgotten_work_can_be_repeated_and_remembered_work_cannot(bank: Writer) -> None:
    bank.append({4: 40}, SetTransaction("later", 2))
    restored(bank, 1)
    bank.append({4: 41}, SetTransaction("later", 1))
    assert bank.rows() == {1: 10, 2: 20, 3: 30, 4: 41}
    with pytest.raises(ConcurrentTransactionError):
        bank.append({5: 50}, SetTransaction("append", 1))


def test_a_unit_that_was_raised_after_the_version_gets_its_earlier_value(bank: Writer) -> None:
    bank.append({4: 40}, SetTransaction("append", 2))
    restored(bank, 1)
    assert bank.log.snapshot().transaction_version("append") == 1
    bank.append({4: 41}, SetTransaction("append", 2))
    assert bank.rows()[4] == 41


def test_a_restore_to_before_a_restore_remembers_the_forgotten_work(bank: Writer) -> None:
    restored(bank, 0)
    assert bank.log.snapshot().transaction_version("append") == -1
    restored(bank, 2)
    assert bank.log.snapshot().transaction_version("append") == 1


def test_the_unit_of_the_restore_itself_is_recorded(bank: Writer) -> None:
    restored(bank, 0, txn=("restore", 1))
    assert bank.log.snapshot().transaction_version("restore") == 1
    restored(bank, 1, txn=("restore", 2))
    assert bank.log.snapshot().transaction_version("restore") == 2


def test_work_forgotten_by_a_restore_is_still_forgotten_after_a_checkpoint(bank: Writer) -> None:
    restored(bank, 0)
    bank.log.checkpoint(bank.log.snapshot())
    reopened = DeltaLog(bank.log.store, bank.log.name, bank.log.clock)
    assert reopened.snapshot().transaction_version("append") == -1


# Obstacles


def test_a_version_with_deleted_files_is_refused_before_anything_is_written(bank: Writer) -> None:
    (lost,) = set(bank.log.snapshot_at(1).files["path"].to_pylist()) - set(
        bank.log.snapshot().files["path"].to_pylist()
    )
    bank.log.store.delete(lost)
    with pytest.raises(DataFileMissingError, match="version 1 cannot be restored: 1 data file is missing") as e:
        restored(bank, 1)
    assert e.value.details["files"] == (lost,)
    assert bank.log.snapshot().version == 2


def test_a_version_older_than_the_retention_is_restored_if_its_files_exist(bank: Writer) -> None:
    bank.log.clock.sleep(8 * DAY_MS / 1000)
    restored(bank, 1)
    assert bank.rows() == {1: 10, 2: 20, 3: 30}


def test_files_that_a_running_vacuum_may_delete_are_not_restored(bank: Writer) -> None:
    bank.log.clock.sleep(8 * DAY_MS / 1000)
    note(bank.log, vacuum.START)
    bank.log.checkpoint(bank.log.snapshot())
    with pytest.raises(ConcurrentModificationError, match="the VACUUM of version 3 has not finished"):
        restored(bank, 1)
    note(bank.log, vacuum.END)
    restored(bank, 1)
    assert bank.rows() == {1: 10, 2: 20, 3: 30}


def test_a_killed_vacuum_blocks_a_restore_for_a_day(bank: Writer) -> None:
    bank.log.clock.sleep(8 * DAY_MS / 1000)
    note(bank.log, vacuum.START)
    bank.log.clock.sleep(2 * DAY_MS / 1000)
    assert restored(bank, 1).version == 4


def test_a_vacuum_that_starts_before_the_commit_stops_the_restore(bank: Writer) -> None:
    bank.log.clock.sleep(8 * DAY_MS / 1000)
    target = Target(bank.log.name, bank.log, bank.log.snapshot())
    note(bank.log, vacuum.START)
    with pytest.raises(ConcurrentModificationError):
        restore(target, RestorePoint(1), WriteSettings())
    assert bank.log.snapshot().version == 3


def test_rows_cannot_be_removed_from_a_table_that_becomes_append_only() -> None:
    bank = Writer(MemoryStore(), seed=1)
    bank.create({1: 10})
    metadata = replace(bank.log.snapshot().metadata, configuration={"delta.appendOnly": "true"})
    change(bank.log, metadata=metadata)
    bank.append({2: 20})
    with pytest.raises(UnsupportedStatementError, match="append-only"):
        restored(bank, 1)


def test_column_ids_are_never_reused() -> None:
    bank = Writer(MemoryStore(), seed=1)
    bank.create({1: 10})
    before = bank.log.snapshot().metadata
    features = ("appendOnly", "invariants", "columnMapping")
    by_name = replace(before, configuration={"delta.columnMapping.mode": "name"})
    first = column_mapping.mapped(by_name, before, bank.log.clock.new_id, "bank")
    change(bank.log, metadata=first, protocol=Protocol(3, 7, ("columnMapping",), features))
    wider = StructType((*bank.log.snapshot().schema, StructField("note", PrimitiveType("string"))))
    more = column_mapping.mapped(replace(first, schema_string=wider.to_json()), first, bank.log.clock.new_id, "bank")
    change(bank.log, metadata=more)
    restored(bank, 1)
    now = bank.log.snapshot()
    assert now.schema.names == ("id", "amount")
    assert now.metadata.configuration["delta.columnMapping.maxColumnId"] == "3"
    restored(bank, 0)
    assert bank.log.snapshot().properties.column_mapping_mode == "none"
    assert bank.rows() == {1: 10}


def test_the_protocol_is_never_lowered() -> None:
    bank = Writer(MemoryStore(), seed=1)
    bank.create({1: 10})
    change(bank.log, protocol=Protocol(3, 7, ("deletionVectors",), ("appendOnly", "invariants", "deletionVectors")))
    restored(bank, 0)
    assert bank.log.snapshot().protocol.writer_features is not None


def test_files_whose_paths_the_log_spells_differently_are_the_same_files(tmp_path: Path) -> None:
    """A file of a partition with a space in its value, and a file outside of the table's folder."""
    bank = Writer(LocalStore(tmp_path / "table"), seed=1)
    bank.create({1: 10})
    elsewhere = LocalStore(tmp_path / "else")
    for store, folder in ((bank.log.store, "a b"), (elsewhere, "")):
        store.make_folder(folder)
        store.put(f"{folder}/x" if folder else "x", b"[]")
    odd = (AddFile("a%20b/x", {}, 2, 1), AddFile(f"file://{tmp_path}/else/x", {}, 2, 1))
    change(bank.log, adds=odd)
    change(bank.log, removes=tuple(add.remove(bank.log.clock.now_ms()) for add in odd))
    assert restored(bank, 1).files_added == 2
    elsewhere.delete("x")
    change(bank.log, removes=tuple(add.remove(bank.log.clock.now_ms()) for add in odd))
    with pytest.raises(DataFileMissingError, match="else/x"):
        restored(bank, 1)


def test_a_file_with_another_deletion_vector_is_another_file() -> None:
    """Checked in the commit itself."""
    bank = Writer(MemoryStore(), seed=1)
    bank.create({1: 10})
    change(bank.log, protocol=Protocol(3, 7, ("deletionVectors",), ("appendOnly", "invariants", "deletionVectors")))
    (add,) = bank.log.snapshot().add_files()
    vector = DeletionVector("i", "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", 40, 6)
    marked: AddFile = replace(add, deletion_vector=vector, data_change=True)
    change(bank.log, adds=(marked,), removes=(add.remove(0),))
    restored(bank, 1)
    (commit,) = bank.log.commits(3)
    files = {
        type(each).__name__: each.deletion_vector  # type: ignore[union-attr]
        for each in commit.actions
        if type(each).__name__ in ("AddFile", "RemoveFile")
    }
    assert files == {"AddFile": None, "RemoveFile": vector}
