"""Histories of interleaved clients on the kernel, with lost answers and killed clients, have no anomaly."""

from __future__ import annotations

import weakref

import pytest

from tests.histories.checker import check
from tests.histories.history import Answer
from tests.histories.interleaved import Run, workload
from tests.simulation.interleaving import Scheduler, random_order


class Snapshot:
    """A snapshot that refers to itself, so that only a collection of garbage frees it."""

    itself: Snapshot


@pytest.mark.parametrize("has_folders", [True, False])
def test_transactions_on_tables_of_any_level_have_no_anomaly(seed: int, has_folders: bool) -> None:
    history = Run(workload(seed, length=15), has_folders).history()
    assert check(history) == [], f"seed {seed}"


def test_transactions_that_two_clients_repeat_at_the_same_time_have_no_anomaly(seed: int) -> None:
    history = Run(workload(seed, clients=2, length=15), twins=2).history()
    assert check(history) == [], f"seed {seed}"


def test_a_transaction_that_failed_is_unknown_if_a_twin_was_killed_after_applying_it() -> None:
    history = Run(workload(2025, length=15), has_folders=False, twins=2).history()
    assert check(history) == []
    assert any(each.answer is Answer.UNKNOWN and each.written for each in history.transactions)


def test_a_seed_gives_the_same_history_again_with_all_that_statements_have_read() -> None:
    first, second = (Run(workload(1, clients=3, length=8)).history() for _ in range(2))
    assert first == second
    assert any(each.written and each.reads for each in first.transactions)


def test_no_collection_of_garbage_changes_a_history() -> None:
    def lives_after_allocations() -> bool:
        snapshot = Snapshot()
        snapshot.itself, handed_out = snapshot, weakref.ref(snapshot)
        del snapshot
        allocated: list[list[int]] = [[] for _ in range(100_000)]
        return len(allocated) > 0 and handed_out() is not None

    assert not lives_after_allocations()
    assert Scheduler().run([lives_after_allocations], random_order(1)) == [True]


@pytest.mark.long
@pytest.mark.parametrize("number", range(40))
def test_many_transactions_have_no_anomaly(seed: int, number: int) -> None:
    history = Run(workload(seed + number, length=25), number % 2 == 0, twins=1 + number % 5 // 4).history()
    assert check(history) == [], f"seed {seed + number}"
