"""The simulation fails if a rule of the kernel is broken on purpose; each test breaks the rule in its name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from dbt.adapters.silt.engine.kernel.errors import StorageError
from dbt.adapters.silt.engine.kernel.files.table_files import TableFiles
from dbt.adapters.silt.engine.kernel.log import log
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.maintenance import vacuum
from dbt.adapters.silt.engine.kernel.scan import consistent_cut
from dbt.adapters.silt.engine.kernel.storage.memory_store import MemoryFolder
from dbt.adapters.silt.engine.kernel.storage.store import PinnedFolder, PutResult, Store
from dbt.adapters.silt.engine.kernel.table.paths import commit_name
from dbt.adapters.silt.engine.kernel.transaction import attempt, commit, conflicts
from tests.simulation.oracle import Violation
from tests.simulation.simulation import simulate

SEEDS = 300


def first_violation(start: int = 100) -> str:
    """Returns the violation of the first of 300 seeds that fails; fails if no seed does.

    For rare violations, `start` is just before the last failing seed.
    """
    for seed in range(start, start + SEEDS):
        try:
            simulate(seed)
        except Violation as violation:
            return str(violation).rpartition("\n")[2]
    pytest.fail(f"{SEEDS} seeds passed")


def passed(*_: object) -> None:
    """A check that always passes."""


@pytest.mark.parametrize(
    ("check", "start"),
    [
        ("check_added_files", 100),
        ("check_removed_files_were_not_read", 600),
        ("check_removed_files_are_not_removed_again", 100),
        ("check_metadata", 220),
        ("check_transactions", 330),
    ],
)
def test_a_missing_conflict_check_is_found(check: str, start: int) -> None:
    with mock.patch.object(conflicts, check, passed):
        first_violation(start)


def test_a_rule_for_all_rows_that_is_committed_at_the_tables_level_is_found() -> None:
    with mock.patch.object(commit, "effective_isolation_level", lambda level, _: level):
        assert "rows were overlooked" in first_violation(140)


def test_an_unknown_answer_taken_for_a_conflict_is_found() -> None:
    """After a lost answer, the transaction tries the next version and is committed twice."""

    def hasty(log: DeltaLog, folder: PinnedFolder, version: int, entry: attempt.Entry) -> attempt.Outcome:
        try:
            put = folder.put_if_absent(commit_name(version), entry.data)
        except StorageError:
            return attempt.Conflict()
        return attempt.Committed() if put is PutResult.CREATED else attempt.Conflict()

    with mock.patch.object(commit, "attempt", hasty):
        first_violation()


def test_a_put_that_overwrites_is_found() -> None:
    def put(self: MemoryFolder, name: str, data: bytes) -> PutResult:
        self.tree.write(f"{self.path}/{name}", data)
        return PutResult.CREATED

    with mock.patch.object(MemoryFolder, "put_if_absent", put):
        assert "has gaps, or a version twice" in first_violation()


def test_a_commit_to_the_log_of_a_re_created_table_is_found() -> None:
    original: Callable[..., PutResult] = MemoryFolder.put_if_absent

    def unpinned(self: MemoryFolder, name: str, data: bytes) -> PutResult:
        return original(MemoryFolder(self.tree, self.path, self.tree.require_folder(self.path)), name, data)

    with mock.patch.object(MemoryFolder, "put_if_absent", unpinned):
        first_violation(180)


def test_tables_that_are_pinned_without_a_second_check_are_found() -> None:
    def hasty_cut(logs: Iterable[DeltaLog]) -> dict[DeltaLog, Snapshot]:
        return {log: log.snapshot() for log in logs}

    with mock.patch.object(consistent_cut, "consistent_cut", hasty_cut):
        assert "no moment" in first_violation(140)


def test_a_checkpoint_that_lacks_a_file_is_found() -> None:
    real = log.write_checkpoint

    def lacking(store: Store, snapshot: Snapshot, *rest: Any) -> None:
        real(store, replace(snapshot, active=TableFiles(snapshot.files.slice(1))), *rest)

    with mock.patch.object(log, "write_checkpoint", lacking):
        first_violation()


def test_a_vacuum_that_keeps_only_the_newest_version_is_found() -> None:
    def newest(log: DeltaLog, snapshot: Snapshot, cutoff_ms: int) -> vacuum.Needed:
        return vacuum.Needed(frozenset(add.path for add in snapshot.add_files()), frozenset())

    with mock.patch.object(vacuum, "needed", newest):
        assert "deleted" in first_violation()
