"""The checker finds an anomaly if a rule of the kernel is switched off: each test switches off the rule in its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import TypeVar
from unittest import mock

import pytest

from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.publication.prepared import Settle
from dbt.adapters.silt.engine.kernel.publication.publication_tables import ExistingTable
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.actions import AddFile
from dbt.adapters.silt.engine.kernel.transaction import commit, conflicts
from dbt.adapters.silt.engine.kernel.transaction.competing_commits import PendingCommit, WinningCommit
from dbt.adapters.silt.engine.kernel.transaction.following import without_bin
from tests.faulty_store import FaultyStore
from tests.fixed_clock import FixedClock
from tests.histories import kernel_door
from tests.histories.checker import check, names
from tests.histories.client import Client, Journal, stored_reads, transactions_of
from tests.histories.history import Append, History, Key, Level, Transaction
from tests.histories.interleaved import Run, theme
from tests.histories.kernel_door import KernelDoor
from tests.histories.workload import Request, Workload
from tests.memory_store import MemoryStore
from tests.simulation.rows_table import Writer

T = TypeVar("T")

SEEDS = 30


def first_anomalies(kinds: tuple[str, ...], twins: int = 1, level: Level = Level.SERIALIZABLE) -> set[str]:
    """The names of the anomalies of the first seed that has any."""
    for seed in range(SEEDS):
        if found := names(check(Run(theme(seed, kinds, level), twins=twins).history())):
            return found
    pytest.fail(f"{SEEDS} seeds have no anomaly")


def passed(*_: object) -> None:
    """A check that checks nothing."""


def test_rows_that_were_added_and_would_have_been_read() -> None:
    with mock.patch.object(conflicts, "check_added_files", passed):
        assert first_anomalies(("append and read", "insert and read")) == {"G2"}


def test_rows_that_were_read_and_are_removed() -> None:
    with mock.patch.object(conflicts, "check_removed_files_were_not_read", passed):
        assert first_anomalies(("append and read", "delete", "read")) == {"G2"}


class MeanwhileStore(FaultyStore):
    """A store that calls a function before the first write of a data file."""

    def __init__(self, inner: Store, meanwhile: Callable[[], None]) -> None:
        super().__init__(inner)
        self.left = [meanwhile]

    def around(self, operation: str, path: str, run: Callable[[], T]) -> T:
        if operation == "put" and path.endswith(".data") and self.left:
            self.left.pop()()
        return super().around(operation, path, run)


def history_with_a_moved_row() -> History:
    """A row is moved to another file and then deleted, while a statement that has read it runs."""
    asked = Workload(0, 1, 1, {"t": Level.SERIALIZABLE}, weights={"delete": 1.0})
    memory, time = MemoryStore(), count()
    (delete,) = asked.requests(0)
    list_key, deleted_key = Key("t", 0), delete.writes[0].key  # type: ignore[union-attr]
    append = Request("append", "t", (Append(list_key, 1),), sets=(deleted_key,))
    read = Request("read", "t", lists=(list_key,), sets=(deleted_key,))
    lines: dict[int, list[str]] = {}

    def run(client: int, request: Request, store: Store) -> list[Transaction]:
        lines[client] = []
        door = KernelDoor.over(store, asked, FixedClock(seed=client))
        Client(client, [request], door, Journal(lines[client].append, lambda: next(time))).live()
        return transactions_of([request], client, lines[client])

    transactions: list[Transaction] = []

    def meanwhile() -> None:
        table = Writer(memory.child("t"), seed=9)
        table.compact(slice(-1, None))
        transactions.extend([*run(1, delete, memory), *run(2, read, memory)])

    KernelDoor.over(memory, asked, FixedClock()).create(asked)
    transactions += run(0, append, MeanwhileStore(memory, meanwhile))
    transactions += run(3, read, memory)
    return asked.history(transactions, stored_reads([line for each in lines.values() for line in each]))


def test_rows_that_were_read_and_are_moved_and_then_removed() -> None:
    assert check(history_with_a_moved_row()) == []
    with mock.patch.object(conflicts, "_moved_reads", lambda winner, pending: frozenset()):
        assert names(check(history_with_a_moved_row())) == {"G2"}


def test_files_that_are_removed_twice() -> None:
    with mock.patch.object(conflicts, "check_removed_files_are_not_removed_again", passed):
        assert "statement applied twice" in first_anomalies(("append", "optimize"))


BESIDE_UPKEEP = ("append", "insert and read", "delete", "add", "upkeep")


def test_upkeep_and_bins_that_are_taken_back_are_no_anomaly() -> None:
    for seed in range(5):
        assert check(Run(theme(seed, BESIDE_UPKEEP, Level.SERIALIZABLE)).history()) == [], seed


def test_a_bin_that_is_taken_back_without_the_removal_of_its_new_file() -> None:
    def kept(winner: WinningCommit, pending: PendingCommit) -> PendingCommit:
        taken_back = without_bin(winner, pending)
        new = {add.path for add in winner.of(AddFile)}
        left = tuple(each for each in taken_back.changes.removes if each.path not in new)
        return replace(taken_back, changes=replace(taken_back.changes, removes=left))

    with mock.patch(f"{conflicts.__name__}.without_bin", kept):
        assert first_anomalies(BESIDE_UPKEEP)


def test_a_unit_of_work_that_two_clients_do_at_the_same_time() -> None:
    with mock.patch.object(conflicts, "check_transactions", passed):
        assert "statement applied twice" in first_anomalies(("append", "insert"), twins=2)


def test_two_changes_of_the_metadata() -> None:
    with mock.patch.object(conflicts, "check_metadata", passed):
        assert "unit of work lost" in first_anomalies(("declare", "read"))


def test_a_change_of_the_metadata_at_the_level_of_the_table() -> None:
    with mock.patch.object(commit, "effective_isolation_level", lambda level, _: level):
        kinds = ("insert", "append", "declare and read", "read")
        assert first_anomalies(kinds, level=Level.SNAPSHOT) == {"G2"}


def first_anomalies_of_transactions(kind: str = "transaction") -> set[str]:
    """The names of the anomalies of the first seed of transactions over two tables that has any."""
    for seed in range(SEEDS):
        levels = dict.fromkeys(("t0", "t1"), Level.SERIALIZABLE)
        asked = Workload(seed, 4, 12, levels, weights={kind: 3.0, "read": 2.0})
        if found := names(check(Run(asked).history())):
            return found
    pytest.fail(f"{SEEDS} seeds have no anomaly")


def test_commits_of_a_publication_that_readers_see_before_its_decision() -> None:
    with mock.patch.object(DeltaLog, "_undecided", lambda log, loaded: None):
        assert first_anomalies_of_transactions() <= {"G1a", "G-single", "G2"}


def test_reads_of_a_transaction_in_tables_that_it_does_not_write() -> None:
    checked = ExistingTable.checked

    def unchecked(table: ExistingTable, settle: Settle, publication: int | None = None) -> ExistingTable:
        return checked(table, settle, publication) if table.is_changed else table

    with mock.patch.object(ExistingTable, "checked", unchecked):
        assert first_anomalies_of_transactions() == {"G2"}


def test_reads_of_a_statement_that_has_changed_nothing() -> None:
    assert check(Run(theme(0, ("claim", "read"), Level.SERIALIZABLE)).history()) == []
    with mock.patch.object(kernel_door, "note_reads", passed):
        assert first_anomalies_of_transactions("claim") <= {"G-single", "G2"}
