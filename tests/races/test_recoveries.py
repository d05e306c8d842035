"""Recoveries: lost answers, killed processes, clean-ups and clocks, with who does what when."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dbt.adapters.silt.engine.kernel.clock import Clock
from dbt.adapters.silt.engine.kernel.errors import (
    CommitStateUnknownError,
    ConcurrentModificationError,
    ConcurrentTransactionError,
    DataFileMissingError,
    NotATableError,
)
from dbt.adapters.silt.engine.kernel.log.cleanup import clean_up
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.actions import SetTransaction
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER, commit_path
from tests.faulty_store import Fault, FaultKind
from tests.fixed_clock import FixedClock
from tests.memory_object_store import MemoryObjectStore
from tests.memory_store import MemoryStore
from tests.races.transactions import (
    ATTEMPTED,
    FILES_WRITTEN,
    HIGH,
    LOW,
    PINNED,
    SETTLED,
    VALIDATED,
    Killed,
    Phase,
    Race,
    Table,
    Transaction,
)

UNIT = SetTransaction("unit", 1)
DAY_MS = 24 * 60 * 60 * 1000
ALWAYS = 100
AnyStore = Callable[[Clock], Store]
STORES: tuple[AnyStore, ...] = (MemoryStore, MemoryObjectStore, lambda clock: MemoryObjectStore(clock).never_reused())


def lost_answers(times: int = 1) -> list[Fault]:
    """The storage carries out the first writes of versions, but does not answer."""
    return [Fault("put_if_absent", FaultKind.FAIL_AFTER, "*.json", times=times)]


def failures(times: int = 1) -> list[Fault]:
    """The storage does not carry out the first writes of versions."""
    return [Fault("put_if_absent", FaultKind.FAIL_BEFORE, "*.json", times=times)]


def append(table: Table) -> object:
    return table.append({3: 30})


def append_other(table: Table) -> object:
    return table.append({4: 40})


def append_once(table: Table) -> object:
    """A unit of work, which is skipped if the table has it already."""
    if table.log.snapshot().transaction_version(UNIT.app_id) is not None:
        return None
    return table.append({3: 30}, UNIT)


# Lost answers


@pytest.mark.parametrize("has_folders", [True, False])
def test_a_writer_whose_answer_was_lost_finds_its_commit(has_folders: bool) -> None:
    race = Race(store=MemoryStore if has_folders else MemoryObjectStore)
    writer = race.writer(append, faults=lost_answers())
    race.run(writer.until(SETTLED))
    assert writer.version == 1
    assert race.operations() == ["CREATE TABLE", "WRITE"]


def test_a_writer_whose_answer_was_lost_finds_its_commit_below_later_commits() -> None:
    race = Race()
    writer, other = race.writer(append, faults=lost_answers()), race.writer(append_other)
    race.run(writer.until(ATTEMPTED), other.until(SETTLED), writer.until(SETTLED))
    assert (writer.version, other.version) == (1, 2)
    assert race.rows() == {**LOW, **HIGH, 3: 30, 4: 40}


def test_a_writer_whose_write_failed_finds_its_version_taken_and_follows() -> None:
    race = Race()
    writer, other = race.writer(append, faults=failures()), race.writer(append_other)
    race.run(writer.until(ATTEMPTED), other.until(SETTLED), writer.until(SETTLED))
    assert (other.version, writer.version) == (1, 2)


def test_a_writer_that_never_gets_an_answer_does_not_know_and_its_rerun_skips_the_work() -> None:
    race = Race()
    writer, rerun = race.writer(append_once, faults=lost_answers(ALWAYS)), race.writer(append_once)
    unreadable = Fault("read", FaultKind.FAIL_BEFORE, f"*{commit_path(1)}", times=ALWAYS)
    writer.store.faults.append(unreadable)
    race.run(writer.until(SETTLED), rerun.until(SETTLED))
    assert isinstance(writer.error, CommitStateUnknownError)
    assert (rerun.error, rerun.result) == (None, None)
    assert race.rows() == {**LOW, **HIGH, 3: 30}


def test_a_writer_whose_writes_all_failed_does_not_know_and_its_rerun_does_the_work() -> None:
    race = Race()
    writer, rerun = race.writer(append_once, faults=failures(ALWAYS)), race.writer(append_once)
    race.run(writer.until(SETTLED), rerun.until(SETTLED))
    assert isinstance(writer.error, CommitStateUnknownError)
    assert rerun.version == 1


# Killed processes


@pytest.mark.parametrize(("phase", "version"), [(PINNED, 1), (FILES_WRITTEN, 1), (VALIDATED, 1), (ATTEMPTED, None)])
def test_a_rerun_of_a_killed_process_does_the_work_once(phase: Phase, version: int | None) -> None:
    race = Race()
    killed, rerun = race.writer(append_once), race.writer(append_once)
    race.run(killed.until(phase), killed.kill, killed.until(SETTLED), rerun.until(SETTLED))
    assert isinstance(killed.error, Killed)
    assert rerun.version == version
    assert race.rows() == {**LOW, **HIGH, 3: 30}


def test_a_rerun_beside_the_process_that_was_taken_for_dead_does_not_repeat_the_work() -> None:
    race = Race()
    slow, rerun = race.writer(append_once), race.writer(append_once)
    race.run(slow.until(VALIDATED), rerun.until(SETTLED), slow.until(SETTLED))
    assert rerun.version == 1
    assert isinstance(slow.error, ConcurrentTransactionError)


def test_the_files_of_a_killed_process_are_not_in_the_table() -> None:
    race = Race()
    killed = race.writer(append)
    race.run(killed.until(VALIDATED), killed.kill, killed.until(SETTLED))
    assert race.rows() == {**LOW, **HIGH}


# Clean-ups and VACUUM


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("phase", [FILES_WRITTEN, VALIDATED])
@pytest.mark.parametrize("behind_ms", [0, DAY_MS // 24])
def test_a_transaction_whose_winners_were_cleaned_up_is_refused(behind_ms: int, phase: Phase, store: AnyStore) -> None:
    """Its version is free again, also for a process whose clock is an hour behind."""
    short = {"delta.logRetentionDuration": "interval 1 day", "delta.checkpointInterval": "2"}
    race = Race(configuration=short, store=store)
    slow = race.writer(append)

    def others_commit_and_clean_up() -> None:
        for key in range(10, 14):
            race.table().append({key: 0})
        race.clock.at_ms = (race.clock.at_ms // DAY_MS + 2) * DAY_MS + DAY_MS // 48
        slow.clock.at_ms = race.clock.at_ms - behind_ms
        for key in range(14, 16):
            race.table().append({key: 0})

    race.run(slow.until(phase), others_commit_and_clean_up, slow.until(SETTLED))
    assert race.store.status(commit_path(1)) is None
    assert race.rows() == {**LOW, **HIGH, **dict.fromkeys(range(10, 16), 0)}
    assert isinstance(slow.error, ConcurrentModificationError) and "logRetentionDuration" in str(slow.error)


@pytest.mark.parametrize("store", STORES)
def test_a_writer_whose_answer_was_lost_before_a_clean_up_does_not_know_whether_it_has_committed(
    store: AnyStore,
) -> None:
    """Its version is free when it writes the same bytes again; its commit is in a checkpoint."""
    short = {"delta.logRetentionDuration": "interval 1 day", "delta.checkpointInterval": "2"}
    race = Race(configuration=short, store=store)
    slow = race.writer(append, faults=lost_answers(1))

    def others_commit_and_clean_up() -> None:
        for key in range(10, 14):
            race.table().append({key: 0})
        race.clock.at_ms = slow.clock.at_ms = (race.clock.at_ms // DAY_MS + 2) * DAY_MS + DAY_MS // 48
        for key in range(14, 16):
            race.table().append({key: 0})
        assert race.store.status(commit_path(1)) is None

    race.run(slow.until(VALIDATED), slow.until(VALIDATED), others_commit_and_clean_up, slow.until(SETTLED))
    assert isinstance(slow.error, CommitStateUnknownError)
    assert race.rows() == {**LOW, **HIGH, 3: 30, **dict.fromkeys(range(10, 16), 0)}
    assert race.store.status(commit_path(1)) is None


@pytest.mark.parametrize("store", STORES)
def test_a_commit_remains_although_the_version_that_it_is_based_on_is_cleaned_up(store: AnyStore) -> None:
    """A storage without folders tells by such a version whether the table exists."""
    race = Race(configuration={"delta.logRetentionDuration": "interval 1 day"}, store=store)
    slow, other = race.writer(append), race.writer(append_other)

    def two_days_pass() -> None:
        race.clock.at_ms = slow.clock.at_ms = (race.clock.at_ms // DAY_MS + 2) * DAY_MS

    def checkpoint_and_clean_up() -> None:
        newest = race.log().snapshot()
        race.log().checkpoint(newest)
        clean_up(race.store, newest, race.clock.at_ms)
        assert race.store.status(commit_path(0)) is None

    beginning = (slow.until(VALIDATED), other.until(SETTLED), two_days_pass, slow.until(VALIDATED))
    race.run(*beginning, checkpoint_and_clean_up, slow.until(SETTLED))
    assert slow.version == 2
    assert race.rows() == {**LOW, **HIGH, 3: 30, 4: 40}


def test_a_data_file_that_is_deleted_before_the_commit_is_not_committed() -> None:
    race = Race()
    writer = race.writer(append)

    def delete_new_file() -> None:
        named = {file.path for file in race.log().snapshot().add_files()}
        (new,) = (
            file.path for file in race.store.list_from("") if file.path.endswith(".data") and file.path not in named
        )
        race.store.delete(new)

    race.run(writer.until(FILES_WRITTEN), delete_new_file, writer.until(SETTLED))
    assert isinstance(writer.error, DataFileMissingError)
    assert race.operations() == ["CREATE TABLE"]


# Checkpoints


def test_a_checkpoint_of_a_table_that_is_dropped_and_created_again_is_not_written_into_the_new_table() -> None:
    race = Race()

    def checkpoint(table: Table) -> None:
        table.log.checkpoint(table.snapshot())

    def drop_and_create() -> None:
        race.store.rename_folder(LOG_FOLDER, "dropped")
        race.store.make_folder(LOG_FOLDER)
        race.table().create({7: 70})

    writer = race.writer(checkpoint)
    race.run(writer.until(PINNED), drop_and_create, writer.until(SETTLED))
    assert isinstance(writer.error, NotATableError)
    assert not [file.name for file in race.store.list_from(LOG_FOLDER) if "checkpoint" in file.name]


def test_a_checkpoint_beside_commits_holds_its_own_version() -> None:
    race = Race()

    def checkpoint(table: Table) -> None:
        table.log.checkpoint(table.snapshot())

    writer, other = race.writer(checkpoint), race.writer(append)
    race.run(writer.until(PINNED), other.until(SETTLED), writer.until(SETTLED))
    race.store.delete(commit_path(0))
    assert race.rows() == {**LOW, **HIGH, 3: 30}


# Clocks


def test_a_writer_whose_clock_is_behind_commits_after_its_winner() -> None:
    race = Race(configuration={"delta.enableInCommitTimestamps": "true"})
    slow = race.writer(append, clock=FixedClock(at_ms=race.clock.at_ms - DAY_MS, seed=9))
    other = race.writer(append_other, clock=FixedClock(at_ms=race.clock.at_ms + DAY_MS, seed=8))
    race.run(slow.until(VALIDATED), other.until(SETTLED), slow.until(SETTLED))
    theirs, own = (commit.info.in_commit_timestamp for commit in race.log().commits(1))
    assert theirs is not None and own == theirs + 1


def test_a_clock_that_is_set_back_between_two_commits_keeps_their_times_in_order() -> None:
    race = Race(configuration={"delta.enableInCommitTimestamps": "true"})

    def twice(table: Table) -> object:
        table.append({3: 30})
        return table.append({4: 40})

    writer = race.writer(twice)
    race.run(writer.until(VALIDATED), writer.until(PINNED), lambda: set_back(writer), writer.until(SETTLED))
    first, second = (commit.info.in_commit_timestamp for commit in race.log().commits(1))
    assert first is not None and second == first + 1


def set_back(writer: Transaction) -> None:
    writer.clock.at_ms -= DAY_MS
