"""The simulation fails if a rule of the kernel is broken on purpose; each test breaks the rule in its name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest
from pyroaring import BitMap64

from dbt.adapters.silt.engine.catalog.names import log_end
from dbt.adapters.silt.engine.commands.maintenance import rewritten_bins
from dbt.adapters.silt.engine.kernel.clock import Clock
from dbt.adapters.silt.engine.kernel.errors import StorageError
from dbt.adapters.silt.engine.kernel.files import deletion_vectors
from dbt.adapters.silt.engine.kernel.files.table_files import TableFiles
from dbt.adapters.silt.engine.kernel.log import log
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.maintenance import vacuum
from dbt.adapters.silt.engine.kernel.scan import consistent_cut
from dbt.adapters.silt.engine.kernel.storage.store import PinnedFolder, PutResult, Store
from dbt.adapters.silt.engine.kernel.table.actions import DeletionVector
from dbt.adapters.silt.engine.kernel.table.paths import commit_name
from dbt.adapters.silt.engine.kernel.transaction import attempt, commit, conflicts
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes
from dbt.adapters.silt.engine.kernel.transaction.competing_commits import PendingCommit, WinningCommit
from dbt.adapters.silt.engine.kernel.transaction.following import without_bin
from tests.memory_store import MemoryFolder
from tests.simulation.simulation import simulate
from tests.simulation.warehouse.oracle import Violation

SEEDS = 300


def first_violation(start: int = 0, has_folders: bool = True, step: int = 1) -> str:
    """Returns the violation of the first of 300 seeds that fails; fails if no seed does.

    For rare violations, `start` is just before a failing seed.
    """
    for seed in range(start, start + SEEDS, step):
        try:
            simulate(seed, has_folders)
        except Violation as violation:
            return str(violation).rpartition("\n")[2]
    pytest.fail(f"{SEEDS} seeds passed")


def first_violation_with_upkeep() -> str:
    """Returns the same of the seeds with upkeep."""
    return first_violation(4, step=5)


def passed(*_: object) -> None:
    """A check that always passes."""


@pytest.mark.parametrize(
    ("check", "start"),
    [
        ("check_added_files", 98),
        ("check_removed_files_were_not_read", 82),
        ("check_removed_files_are_not_removed_again", 10),
        ("check_metadata", 140),
        ("check_transactions", 156),
    ],
)
def test_a_missing_conflict_check_is_found(check: str, start: int) -> None:
    with mock.patch.object(conflicts, check, passed):
        first_violation(start)


def test_a_rule_for_all_rows_that_is_committed_at_the_tables_level_is_found() -> None:
    with mock.patch.object(commit, "effective_isolation_level", lambda level, _: level):
        assert "rows were overlooked" in first_violation(91)


def test_an_unknown_answer_taken_for_a_conflict_is_found() -> None:
    """After a lost answer, the transaction tries the next version and is committed twice."""

    def hasty(log: DeltaLog, folder: PinnedFolder, version: int, entry: attempt.Entry) -> attempt.Outcome:
        try:
            put = folder.put_if_absent(commit_name(version), entry.data)
        except StorageError:
            return attempt.Conflict()
        return attempt.Committed() if put is PutResult.CREATED else attempt.Conflict()

    with mock.patch.object(attempt, "attempt", hasty):
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
        first_violation(191)


def test_tables_that_are_pinned_without_a_second_check_are_found() -> None:
    def hasty_cut(logs: Iterable[DeltaLog]) -> dict[DeltaLog, Snapshot]:
        return {log: log.snapshot() for log in logs}

    with mock.patch.object(consistent_cut, "consistent_cut", hasty_cut):
        assert "no moment" in first_violation(410)


def test_a_checkpoint_that_lacks_a_file_is_found() -> None:
    real = log.write_checkpoint  # type: ignore[attr-defined]

    def lacking(store: Store, snapshot: Snapshot, *rest: Any) -> None:
        real(store, replace(snapshot, active=TableFiles(snapshot.files.slice(1))), *rest)

    with mock.patch.object(log, "write_checkpoint", lacking):
        first_violation()


def test_a_vacuum_that_keeps_only_the_newest_version_is_found() -> None:
    def newest(log: DeltaLog, snapshot: Snapshot, cutoff_ms: int) -> vacuum.Needed:
        return vacuum.Needed(frozenset(add.path for add in snapshot.add_files()), frozenset())

    with mock.patch.object(vacuum, "needed", newest):
        assert "deleted" in first_violation(8)


def test_a_commit_at_a_version_that_was_cleaned_up_is_found() -> None:
    with mock.patch.multiple(attempt, _not_cleaned_up=lambda log, folder, *_: folder, _check_was_free=passed):
        assert "and did not land" in first_violation(11)


def test_a_commit_that_does_not_look_for_a_clean_up_after_its_write_is_found() -> None:
    with mock.patch.object(attempt, "_check_was_free", passed):
        assert "and did not land" in first_violation(31)


def test_a_log_that_is_known_by_a_version_that_is_cleaned_up_is_found() -> None:
    def kept(log: DeltaLog, folder: PinnedFolder, *rest: Any) -> PinnedFolder:
        real(log, folder, *rest)
        return folder

    real = attempt._not_cleaned_up
    with mock.patch.object(attempt, "_not_cleaned_up", kept):
        first_violation(791, has_folders=False)


def test_an_in_commit_timestamp_by_the_clock_alone_is_found() -> None:
    with mock.patch.object(commit, "in_commit_timestamp", lambda now_ms, previous_ms: now_ms):
        assert "not later than the version before it" in first_violation()


def test_a_drop_without_an_in_commit_timestamp_is_found() -> None:
    with mock.patch.object(log_end, "has_in_commit_timestamps", lambda metadata: False):
        assert "no in-commit timestamp" in first_violation()


def test_a_deletion_vector_that_deletes_fewer_rows_is_found() -> None:
    real = deletion_vectors.write

    def fewer(store: Store, clock: Clock, bitmaps: Sequence[BitMap64]) -> tuple[DeletionVector, ...]:
        return real(store, clock, [BitMap64(list(bitmap)[1:]) for bitmap in bitmaps])

    with mock.patch.object(deletion_vectors, "write", fewer):
        violation = first_violation(8)
    assert "read other rows" in violation or "is there twice" in violation


def test_a_vacuum_that_does_not_know_deletion_vectors_is_found() -> None:
    real = vacuum.needed

    def without_vectors(log: DeltaLog, snapshot: Snapshot, cutoff_ms: int) -> vacuum.Needed:
        needed = real(log, snapshot, cutoff_ms)
        return replace(needed, paths=frozenset(path for path in needed.paths if not path.endswith(".bin")))

    with mock.patch.object(vacuum, "needed", without_vectors):
        assert "deleted" in first_violation(38)


def test_an_upkeep_whose_moved_rows_look_changed_is_found() -> None:
    real: Callable[..., Changes] = rewritten_bins._changes

    def marked(*given: Any) -> Changes:
        changes = real(*given)
        return replace(changes, adds=tuple(replace(add, data_change=True) for add in changes.adds))

    with mock.patch.object(rewritten_bins, "_changes", marked):
        assert "readers of changes see moved rows" in first_violation_with_upkeep()


def test_an_upkeep_that_brings_deleted_rows_back_is_found() -> None:
    real = conflicts.check_removed_files_are_not_removed_again

    def only_for_others(winner: WinningCommit, pending: PendingCommit) -> None:
        if not pending.changes.changes_no_data():
            real(winner, pending)

    with mock.patch.object(conflicts, "check_removed_files_are_not_removed_again", only_for_others):
        assert "is not there to remove" in first_violation_with_upkeep()


def test_a_bin_of_which_a_file_is_lost_when_it_is_taken_back_is_found() -> None:
    def without_a_file(winner: WinningCommit, pending: PendingCommit) -> PendingCommit:
        taken_back = without_bin(winner, pending)
        if len(taken_back.changes.adds) < len(pending.changes.adds) + 1:
            return taken_back
        return replace(taken_back, changes=replace(taken_back.changes, adds=taken_back.changes.adds[:-1]))

    with mock.patch(f"{conflicts.__name__}.without_bin", without_a_file):
        first_violation_with_upkeep()


def test_statements_that_lose_to_upkeep_are_found() -> None:
    with mock.patch(f"{conflicts.__name__}.without_bin", lambda winner, pending: pending):
        assert "lost to upkeep" in first_violation_with_upkeep()
