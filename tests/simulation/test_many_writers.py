"""Several writers with mixed statements and lost answers, in random orders of turns.

The statements are functions of the table's rows, so serializability can be checked from outside: applied in the order
of their versions, they must produce the rows of the table.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest

from dbt.adapters.silt.engine.kernel.errors import ConcurrentTransactionError
from dbt.adapters.silt.engine.kernel.table.actions import SetTransaction
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE, And, Column, Comparison, Expression
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitResult
from tests.faulty_store import Fault, FaultKind
from tests.memory_store import MemoryStore
from tests.simulation.interleaving import Scheduler, YieldingStore, random_order
from tests.simulation.rows_table import Writer, until_it_lands

START = [dict.fromkeys(range(first, first + 3), 100) for first in (0, 10, 20)]
WRITERS = 3
STATEMENTS = 3


@dataclass(frozen=True)
class Statement:
    """A statement, and its effect on the rows if it runs alone."""

    run: Callable[[Writer], CommitResult | None]
    apply: Callable[[dict[int, int]], dict[int, int]]


def between(low: int, high: int) -> Expression:
    return And((Comparison(">=", Column.of("id"), low), Comparison("<=", Column.of("id"), high)))


def update(low: int, high: int, by: int) -> Statement:
    return Statement(
        lambda writer: writer.rewrite(between(low, high), lambda _, amount: amount * 2 + by),
        lambda rows: {key: amount * 2 + by if low <= key <= high else amount for key, amount in rows.items()},
    )


def delete(low: int, high: int) -> Statement:
    return Statement(
        lambda writer: writer.rewrite(between(low, high), lambda *_: None, "DELETE"),
        lambda rows: {key: amount for key, amount in rows.items() if not low <= key <= high},
    )


def insert(key: int) -> Statement:
    return Statement(lambda writer: writer.append({key: key}), lambda rows: {**rows, key: key})


def insert_total(key: int) -> Statement:
    return Statement(
        lambda writer: writer.insert_if(TRUE, lambda rows: {key: sum(rows.values())}),
        lambda rows: {**rows, key: sum(rows.values())},
    )


def compact() -> Statement:
    return Statement(lambda writer: writer.compact(), lambda rows: rows)


def statements(chance: random.Random, writer: int) -> list[Statement]:
    found = []
    for number in range(STATEMENTS):
        low = chance.randrange(25)
        new = 1_000 + 100 * writer + number
        choices = (update(low, low + 4, writer), delete(low, low + 1), insert(new), insert_total(new), compact())
        found.append(chance.choice(choices))
    return found


@pytest.mark.parametrize("seed", range(25))
def test_committed_statements_have_the_result_of_a_sequential_run(seed: int) -> None:
    chance = random.Random(seed)
    memory, scheduler = MemoryStore(), Scheduler()
    Writer(memory, seed=0).create(*START)
    faults = [
        Fault("put_if_absent", FaultKind.FAIL_AFTER, "*.json", times=6, probability=0.3),
        Fault("put_if_absent", FaultKind.FAIL_BEFORE, "*.json", times=6, probability=0.3),
    ]
    writers = [Writer(YieldingStore(memory, scheduler, faults, seed), number) for number in range(1, WRITERS + 1)]
    work = [statements(chance, number) for number in range(WRITERS)]
    landed: dict[int, Statement] = {}

    def run_all(writer: Writer, todo: list[Statement]) -> None:
        for statement in todo:
            committed = until_it_lands(lambda statement=statement: statement.run(writer))  # type: ignore[misc]
            assert committed is not None
            assert committed.version not in landed
            landed[committed.version] = statement

    tasks = [lambda w=writer, t=todo: run_all(w, t) for writer, todo in zip(writers, work, strict=True)]
    assert scheduler.run(tasks, random_order(seed)) == [None] * WRITERS

    expected = {key: amount for rows in START for key, amount in rows.items()}
    assert sorted(landed) == list(range(1, WRITERS * STATEMENTS + 1))
    for version in sorted(landed):
        expected = landed[version].apply(expected)
    assert Writer(memory, seed=99).rows() == expected


@pytest.mark.parametrize("seed", range(10))
def test_a_unit_of_work_of_several_writers_is_committed_once(seed: int) -> None:
    memory, scheduler = MemoryStore(), Scheduler()
    Writer(memory, seed=0).create(*START)
    fault = Fault("put_if_absent", FaultKind.FAIL_AFTER, "*.json", times=3, probability=0.5)

    def once(writer: Writer) -> CommitResult | None:
        while writer.log.snapshot().transaction_version("silt/shop/orders") is None:
            try:
                return writer.append({500: 5}, SetTransaction("silt/shop/orders", 1))
            except ConcurrentTransactionError:
                continue
        return None

    writers = [Writer(YieldingStore(memory, scheduler, [fault], seed), number) for number in (1, 2, 3)]
    results = scheduler.run([partial(once, writer) for writer in writers], random_order(seed))
    assert sum(isinstance(result, CommitResult) for result in results) == 1
    assert Writer(memory, seed=99).rows()[500] == 5
