"""A RESTORE alternates with another writer."""

from __future__ import annotations

from functools import partial

import pytest

from dbt.adapters.silt.engine.commands.maintenance.restore import restore
from dbt.adapters.silt.engine.commands.target import Outcome, Target, WriteSettings
from dbt.adapters.silt.engine.kernel.errors import ConcurrentModificationError
from dbt.adapters.silt.engine.kernel.table.actions import SetTransaction
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE
from dbt.adapters.silt.engine.kernel.table.properties import IsolationLevel
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitResult, CommitSettings, commit
from dbt.adapters.silt.engine.kernel.transaction.restore import RestorePoint
from tests.memory_store import MemoryStore
from tests.simulation.interleaving import Scheduler, YieldingStore, random_order
from tests.simulation.rows_table import Writer

UNIT = SetTransaction("unit", 1)


def _restore(writer: Writer) -> Outcome:
    target = Target(writer.log.name, writer.log, writer.log.snapshot())
    return restore(target, RestorePoint(0), WriteSettings())


def _record_only(writer: Writer) -> CommitResult:
    """Commits a statement that changed nothing, and records that it ran."""
    changes = Changes(Operation("MERGE"), transactions=(UNIT,))
    return commit(writer.log, writer.log.snapshot(), changes, ReadSet(), CommitSettings())


def _append(writer: Writer) -> CommitResult:
    return writer.append({9: 90}, UNIT)


def _update(writer: Writer) -> CommitResult:
    return writer.rewrite(TRUE, lambda _, amount: amount + 5)


def _compact(writer: Writer) -> CommitResult:
    return writer.compact()  # type: ignore[return-value]


@pytest.mark.parametrize("level", IsolationLevel)
@pytest.mark.parametrize("other", [_append, _update, _record_only])
def test_a_commit_between_the_restores_read_and_its_own_is_a_conflict(other, level) -> None:  # type: ignore[no-untyped-def]
    writer = _setup(MemoryStore(), 0, level)
    target = Target(writer.log.name, writer.log, writer.log.snapshot())
    other(Writer(writer.log.store, 1, level))
    settings = WriteSettings(commit=CommitSettings(isolation_level=level))
    with pytest.raises(ConcurrentModificationError):
        restore(target, RestorePoint(0), settings)
    assert writer.log.snapshot().version == 2


@pytest.mark.parametrize("other", [_append, _update, _compact, _record_only])
def test_the_table_is_the_result_of_a_sequential_order_of_both(other) -> None:  # type: ignore[no-untyped-def]
    for seed in range(10):
        memory, scheduler = MemoryStore(), Scheduler()
        _setup(memory, 0)
        left, right = (Writer(YieldingStore(memory, scheduler), seed) for seed in (1, 2))
        results = scheduler.run([partial(_restore, left), partial(other, right)], random_order(seed))
        assert all(isinstance(each, Outcome | CommitResult | ConcurrentModificationError) for each in results), results
        landed = [each for each in results if not isinstance(each, ConcurrentModificationError)]
        table = Writer(memory, seed=3)
        found = (table.rows(), table.log.snapshot().transaction_version("unit"))
        assert found in _serial_results(other, landed), (seed, results, found)


def _setup(memory: MemoryStore, seed: int, level: IsolationLevel | None = None) -> Writer:
    writer = Writer(memory, seed, level)
    writer.create({1: 10, 2: 20})
    writer.rewrite(TRUE, lambda _, amount: amount * 10)
    return writer


def _serial_results(other, landed: list[object]) -> list[tuple[dict[int, int], int | None]]:  # type: ignore[no-untyped-def]
    """Returns rows and the unit's version after each sequential order of the committed statements."""
    did_restore = any(isinstance(each, Outcome) for each in landed)
    did_other = any(isinstance(each, CommitResult) for each in landed)
    both = did_restore and did_other
    orders = [(_restore, other), (other, _restore)] if both else [(_restore,) if did_restore else (other,)]  # type: ignore[list-item]
    found = []
    for order in orders:
        writer = _setup(MemoryStore(), 7)
        for statement in order:
            statement(writer)
        found.append((writer.rows(), writer.log.snapshot().transaction_version("unit")))
    return found
