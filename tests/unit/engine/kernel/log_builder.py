"""Builds logs for tests, commit by commit, and replays them in the simplest way."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.storage.store import PutResult, Store
from dbt.adapters.silt.engine.kernel.table.actions import (
    Action,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    serialize,
)
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER, commit_path
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructField, StructType
from tests.fixed_clock import FixedClock
from tests.memory_store import MemoryStore

SCHEMA = StructType((StructField("id", PrimitiveType("long")), StructField("day", PrimitiveType("string"))))
METADATA = Metadata("11111111-2222-3333-4444-555555555555", SCHEMA.to_json(), created_time=1)
PROTOCOL = Protocol(1, 2)


def new_log(
    store: Store | None = None,
    configuration: Mapping[str, str] | None = None,
    partition_columns: Sequence[str] = (),
    protocol: Protocol = PROTOCOL,
    extra: Sequence[Action] = (),
) -> DeltaLog:
    """Creates a table of version 0."""
    store = store or MemoryStore()
    store.make_folder(LOG_FOLDER)
    log = DeltaLog(store, "shop.orders", FixedClock())
    metadata = replace(METADATA, configuration=dict(configuration or {}), partition_columns=tuple(partition_columns))
    put(log, 0, CommitInfo(operation="CREATE TABLE"), protocol, metadata, *extra)
    return log


def put(log: DeltaLog, version: int, *actions: Action) -> None:
    """Writes a commit file unchanged."""
    assert log.store.put_if_absent(commit_path(version), serialize(actions)) is PutResult.CREATED


def add(path: str, day: str | None = None, stats: str | None = None, size: int = 10) -> AddFile:
    values = {} if day is None else {"day": day}
    return AddFile(path, values, size, 1_600_000_000_000, stats=stats)


def reopened(log: DeltaLog) -> DeltaLog:
    """Returns another handle of the same table, which has not read anything yet."""
    return DeltaLog(log.store, log.name, log.clock)


def log_of(versions: int, store: Store | None = None) -> DeltaLog:
    """Creates a table whose version n adds the file `fn`."""
    log = new_log(store)
    for version in range(1, versions + 1):
        put(log, version, CommitInfo(operation="WRITE"), add(f"f{version}"))
    return log


def paths(log: DeltaLog) -> set[str]:
    """Returns the active files of the newest version."""
    return set(log.snapshot().files["path"].to_pylist())


def checkpointed(versions: int, store: Store | None = None) -> DeltaLog:
    """Creates a table as `log_of` does, with its regular checkpoints."""
    log = log_of(versions, store)
    for version in range(1, versions + 1):
        log.after_commit(version)
    return log


@dataclass
class NaiveTable:
    """The specification's reconciliation, with dicts, action by action."""

    files: dict[tuple[str, str | None], AddFile] = field(default_factory=dict)
    removed: dict[tuple[str, str | None], RemoveFile] = field(default_factory=dict)
    transactions: dict[str, int] = field(default_factory=dict)
    domains: dict[str, str] = field(default_factory=dict)

    def apply(self, actions: Sequence[Action]) -> None:
        for action in actions:
            if isinstance(action, AddFile):
                self.files[_key(action)] = replace(action, data_change=False)
                self.removed.pop(_key(action), None)
            elif isinstance(action, RemoveFile):
                self.files.pop(_key(action), None)
                self.removed[_key(action)] = action
            elif isinstance(action, SetTransaction):
                self.transactions[action.app_id] = action.version
            elif isinstance(action, DomainMetadata):
                self.domains.pop(action.domain, None)
                if not action.removed:
                    self.domains[action.domain] = action.configuration


def observed(snapshot: Snapshot) -> NaiveTable:
    """Returns the snapshot in the naive form, without tombstones."""
    return NaiveTable(
        {_key(action): action for action in snapshot.add_files()},
        {},
        {app_id: transaction.version for app_id, transaction in snapshot.transactions.items()},
        {name: domain.configuration for name, domain in snapshot.domains.items()},
    )


def without_tombstones(table: NaiveTable) -> NaiveTable:
    return replace(table, removed={})


def _key(action: AddFile | RemoveFile) -> tuple[str, str | None]:
    return action.path, None if action.deletion_vector is None else action.deletion_vector.unique_id


def stated_at(commit: Path, time_ms: int) -> None:
    """Makes a commit and its file state that time."""
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    infos = [action["commitInfo"] for action in actions if "commitInfo" in action]
    if not infos:
        actions.insert(0, {"commitInfo": {}})
    for info in infos or [actions[0]["commitInfo"]]:
        info["timestamp"] = time_ms
    commit.write_text("".join(json.dumps(action) + "\n" for action in actions))
    os.utime(commit, ns=(time_ms * 1_000_000, time_ms * 1_000_000))
