"""Shallow and deep clones: their rows, files, history and independence."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from pyroaring import BitMap64

from dbt.adapters.silt.engine.commands.tables.clone import CloneOptions, CloneSource, clone
from dbt.adapters.silt.engine.commands.target import Outcome, TableLocation, WriteSettings
from dbt.adapters.silt.engine.kernel.errors import (
    ColumnNotFoundError,
    DataFileMissingError,
    RelationExistsError,
    RelationNotFoundError,
    UnsupportedStatementError,
)
from dbt.adapters.silt.engine.kernel.files import data_files, deletion_vectors
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, CommitInfo, Protocol, SetTransaction
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER, decode_path
from dbt.adapters.silt.engine.kernel.transaction import commit as transaction
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.sql.ast import CreateMode
from tests.simulation.rows_table import Writer

SHALLOW, DEEP = CloneOptions(shallow=True), CloneOptions(shallow=False)


@pytest.fixture
def bank(tmp_path: Path) -> Writer:
    """A table in a folder with an unusual name; version 0 has the rows 1 and 2, version 1 also 3."""
    bank = Writer(LocalStore(tmp_path / "the source %é"), seed=1)
    bank.create({1: 10}, {2: 20})
    bank.append({3: 30}, SetTransaction("load", 1))
    return bank


def place(tmp_path: Path, name: str = "copy") -> TableLocation:
    store = LocalStore(tmp_path / name)
    store.make_folder(LOG_FOLDER)
    log = DeltaLog(store, f"bank.{name}")
    return TableLocation(log, log.snapshot() if log.exists() else None)


def source(bank: Writer, version: int | None = None) -> CloneSource:
    snapshot = bank.log.snapshot() if version is None else bank.log.snapshot_at(version)
    return CloneSource("bank.accounts", bank.log, snapshot)


def cloned(
    to: TableLocation, of: CloneSource, options: CloneOptions, mode: CreateMode = CreateMode.CREATE, **settings: object
) -> Outcome:
    return clone(to, of, options, mode, WriteSettings(**settings))  # type: ignore[arg-type]


def rows(log: DeltaLog) -> dict[int, int]:
    """Returns the rows of all files, wherever they are."""
    found: dict[int, int] = {}
    for add in log.snapshot().add_files():
        store, path = data_files.located(log.store, decode_path(add.path))
        found.update({int(key): amount for key, amount in json.loads(store.read(path))})
    return found


def info(log: DeltaLog) -> CommitInfo:
    (commit,) = log.commits(log.snapshot().version)
    return next(action for action in commit.actions if isinstance(action, CommitInfo))


@pytest.mark.parametrize("options", [SHALLOW, DEEP], ids=["shallow", "deep"])
def test_a_clone_has_the_rows_of_the_version_and_is_independent_afterwards(
    bank: Writer, tmp_path: Path, options: CloneOptions
) -> None:
    to = place(tmp_path)
    cloned(to, source(bank, 0), options)
    assert rows(to.log) == {1: 10, 2: 20}
    bank.append({4: 40})
    assert rows(to.log) == {1: 10, 2: 20}
    snapshot = to.log.snapshot()
    assert snapshot.metadata.id != bank.log.snapshot().metadata.id
    assert snapshot.transactions == {}


def test_a_shallow_clone_copies_no_file_and_a_deep_clone_does_not_need_its_source(bank: Writer, tmp_path: Path) -> None:
    shallow, deep = place(tmp_path, "shallow"), place(tmp_path, "deep")
    cloned(shallow, source(bank), SHALLOW)
    cloned(deep, source(bank), DEEP)
    assert not list((tmp_path / "shallow").rglob("*.data"))
    for path in (tmp_path / "the source %é").rglob("*.data"):
        path.unlink()
    assert rows(deep.log) == {1: 10, 2: 20, 3: 30}


def test_a_clone_of_a_clone_names_the_original_files(bank: Writer, tmp_path: Path) -> None:
    first, second, third = (place(tmp_path, name) for name in ("first", "second", "third"))
    cloned(first, source(bank), SHALLOW)
    cloned(second, CloneSource("first", first.log, first.log.snapshot()), SHALLOW)
    cloned(third, CloneSource("second", second.log, second.log.snapshot()), DEEP)
    assert rows(second.log) == rows(third.log) == {1: 10, 2: 20, 3: 30}
    assert set(second.log.snapshot().files["path"].to_pylist()) == set(first.log.snapshot().files["path"].to_pylist())


def test_the_history_names_the_cloned_table_and_version(bank: Writer, tmp_path: Path) -> None:
    to = place(tmp_path)
    outcome = cloned(to, source(bank, 0), DEEP, txn=("copy", 1))
    assert (outcome.operation, outcome.version, outcome.files_added) == ("CLONE", 0, 2)
    found = info(to.log)
    assert (found.operation, found.operation_parameters) == ("CLONE", {"source": "bank.accounts", "sourceVersion": 0})
    size = str(bank.log.snapshot_at(0).size_in_bytes)
    assert found.operation_metrics == {
        "sourceTableSize": size,
        "sourceNumOfFiles": "2",
        "numRemovedFiles": "0",
        "numCopiedFiles": "2",
        "removedFilesSize": "0",
        "copiedFilesSize": size,
    }
    assert to.log.snapshot().transaction_version("copy") == 1


def test_a_clones_statistics_columns_must_exist(bank: Writer, tmp_path: Path) -> None:
    with pytest.raises(ColumnNotFoundError, match="names nope, which is not a column"):
        cloned(place(tmp_path), source(bank), CloneOptions(True, {"delta.dataSkippingStatsColumns": "nope"}))


def test_a_clone_has_the_properties_of_its_source_overridden_by_those_of_the_statement(
    bank: Writer, tmp_path: Path
) -> None:
    metadata = replace(bank.log.snapshot().metadata, configuration={"delta.appendOnly": "true", "a": "1", "b": "2"})
    changes = Changes(Operation("SET"), metadata=replace(metadata, description="not cloned"))
    transaction.commit(bank.log, bank.log.snapshot(), changes, ReadSet(), transaction.CommitSettings())
    to = place(tmp_path)
    cloned(to, source(bank), CloneOptions(True, {"b": "3", "delta.checkpointInterval": "7"}))
    cloned_metadata = to.log.snapshot().metadata
    assert cloned_metadata.configuration == {
        "delta.appendOnly": "true",
        "a": "1",
        "b": "3",
        "delta.checkpointInterval": "7",
    }
    assert cloned_metadata.description is None


def test_clone_supports_the_modes_of_create(bank: Writer, tmp_path: Path) -> None:
    with pytest.raises(RelationNotFoundError):
        cloned(place(tmp_path), source(bank), SHALLOW, CreateMode.REPLACE)
    cloned(place(tmp_path), source(bank, 0), SHALLOW)
    with pytest.raises(RelationExistsError):
        cloned(place(tmp_path), source(bank), SHALLOW)
    kept = cloned(place(tmp_path), source(bank), SHALLOW, CreateMode.CREATE_IF_NOT_EXISTS)
    assert (kept.version, kept.attempts) == (0, 0)


def test_replacing_a_shallow_clone_changes_only_the_files_that_differ(bank: Writer, tmp_path: Path) -> None:
    cloned(place(tmp_path), source(bank), SHALLOW)
    bank.append({4: 40})
    to = place(tmp_path)
    outcome = cloned(to, source(bank), SHALLOW, CreateMode.CREATE_OR_REPLACE)
    assert (outcome.files_added, outcome.files_removed) == (1, 0)
    assert rows(to.log) == {1: 10, 2: 20, 3: 30, 4: 40}


@pytest.mark.parametrize("options", [SHALLOW, DEEP], ids=["shallow", "deep"])
def test_a_clone_that_replaces_another_table_has_only_its_sources_rows(
    bank: Writer, tmp_path: Path, options: CloneOptions
) -> None:
    other = Writer(LocalStore(tmp_path / "copy"), seed=2)
    other.create({9: 90})
    other.append({8: 80}, SetTransaction("main", 1))
    other.append({7: 70}, SetTransaction("batch", 1))
    to = place(tmp_path)
    assert to.base is not None
    cloned(
        to,
        source(bank),
        options,
        CreateMode.CREATE_OR_REPLACE,
        is_forgotten_on_replace=lambda app_id: app_id == "batch",
    )
    now = to.log.snapshot()
    assert rows(to.log) == {1: 10, 2: 20, 3: 30}
    assert now.metadata.id == to.base.metadata.id
    assert (now.transaction_version("main"), now.transaction_version("batch")) == (1, -1)


def test_a_table_is_not_cloned_onto_itself(bank: Writer) -> None:
    with pytest.raises(UnsupportedStatementError, match="onto itself"):
        cloned(TableLocation(bank.log, bank.log.snapshot()), source(bank, 0), SHALLOW, CreateMode.CREATE_OR_REPLACE)


def test_a_deep_clone_of_a_table_with_missing_files_leaves_no_files(bank: Writer, tmp_path: Path) -> None:
    bank.log.store.delete(bank.log.snapshot().files["path"].to_pylist()[1])
    to = place(tmp_path)
    with pytest.raises(DataFileMissingError):
        cloned(to, source(bank), DEEP)
    assert [path.name for path in (tmp_path / "copy").iterdir()] == [LOG_FOLDER]
    assert not to.log.exists()


def test_partition_folders_are_kept_and_file_names_never_collide(tmp_path: Path) -> None:
    """The sources of two shallow clones may each have a file of the same name."""
    store = LocalStore(tmp_path / "src")
    writer = Writer(store, seed=3)
    writer.create({1: 10})
    adds = []
    for number, folder in enumerate(("p=a%2Fb", "p=a%2Fb/deeper", "q")):
        store.make_folder(folder)
        store.put(f"{folder}/part.json", json.dumps([[number + 5, 1]]).encode())
        adds.append(AddFile(f"{folder.replace('%', '%25')}/part.json", {}, 8, 0))
    changes = Changes(Operation("WRITE"), tuple(adds))
    transaction.commit(writer.log, writer.log.snapshot(), changes, ReadSet(), transaction.CommitSettings())
    to = place(tmp_path)
    cloned(to, source(writer), DEEP)
    names = [decode_path(path).split("/", 1)[1] for path in to.log.snapshot().files["path"].to_pylist()]
    assert {"p=a%2Fb/part.json", "part.json"} < set(names) and len(set(names)) == 4
    assert rows(to.log) == {1: 10, 5: 1, 6: 1, 7: 1}


@pytest.mark.parametrize("options", [SHALLOW, DEEP], ids=["shallow", "deep"])
def test_deletion_vectors_are_cloned_with_their_files(tmp_path: Path, options: CloneOptions) -> None:
    bank = Writer(LocalStore(tmp_path / "src"), seed=4)
    bank.create({1: 10, 2: 20}, {3: 30, 4: 40})
    features = ("appendOnly", "invariants", "deletionVectors")
    changes = Changes(Operation("SET"), protocol=Protocol(3, 7, ("deletionVectors",), features))
    transaction.commit(bank.log, bank.log.snapshot(), changes, ReadSet(), transaction.CommitSettings())
    adds = bank.log.snapshot().add_files()
    vectors = deletion_vectors.write(bank.log.store, bank.log.clock, [BitMap64([0]), BitMap64([1])])
    marked = tuple(
        replace(add, deletion_vector=vector, data_change=True) for add, vector in zip(adds, vectors, strict=True)
    )
    changes = Changes(Operation("DELETE"), marked, tuple(add.remove(1) for add in adds))
    transaction.commit(bank.log, bank.log.snapshot(), changes, ReadSet(), transaction.CommitSettings())
    to = place(tmp_path)
    cloned(to, source(bank), options)
    if not options.shallow:
        for path in (tmp_path / "src").glob("deletion_vector*"):
            path.unlink()
    found = deletion_vectors.read_all(to.log.store, to.log.snapshot().files, "copy")
    assert sorted(list(bitmap) for bitmap in found.values()) == [[0], [1]]
    kinds = {add.deletion_vector.storage_type for add in to.log.snapshot().add_files() if add.deletion_vector}
    assert kinds == {"p" if options.shallow else "u"}
