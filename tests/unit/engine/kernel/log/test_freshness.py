"""The time of the last change of rows: commits that change no rows do not count."""

from __future__ import annotations

from dbt.adapters.silt.engine.kernel.log.commit_search import last_data_change
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.actions import (
    Action,
    AddFile,
    CommitInfo,
    Metadata,
    Protocol,
    SetTransaction,
    serialize,
)
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER, commit_path
from tests.memory_store import MemoryStore

SCHEMA = '{"type":"struct","fields":[]}'
IN_COMMIT = {"delta.enableInCommitTimestamps": "true"}
MADE: tuple[Action, ...] = (
    Protocol(3, 7, (), ("inCommitTimestamp",)),
    Metadata("id", SCHEMA, configuration=IN_COMMIT),
)
FILE = AddFile("a.parquet", {}, size=1, modification_time=1)


def log_of(*commits: tuple[Action, ...]) -> DeltaLog:
    """Returns a log whose version n was committed at second n + 1."""
    store = MemoryStore()
    store.make_folder(LOG_FOLDER)
    for version, actions in enumerate(commits):
        info = CommitInfo(timestamp=1, operation="WRITE", in_commit_timestamp=(version + 1) * 1000)
        store.put_if_absent(commit_path(version), serialize([info, *actions]))
    return DeltaLog(store, "main.orders")


def test_the_newest_commit_that_adds_or_removes_rows_counts() -> None:
    compacted = AddFile("b.parquet", {}, size=1, modification_time=1, data_change=False)
    nothing_new = (SetTransaction("load", 1),)
    log = log_of(MADE, (FILE,), (FILE.remove(1, data_change=False), compacted), nothing_new)
    assert last_data_change(log) == 2000
    assert last_data_change(log_of(MADE, (FILE,), (FILE.remove(1),))) == 3000


def test_a_table_without_rows_has_the_time_of_its_creation() -> None:
    assert last_data_change(log_of(MADE, (SetTransaction("load", 1),))) == 1000
