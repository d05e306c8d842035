"""Tables that consume another table's changes alternate with other processes: each change is consumed once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.commands.commit import with_transaction
from dbt.adapters.silt.engine.commands.maintenance.restore import restore
from dbt.adapters.silt.engine.commands.target import Target, WriteSettings
from dbt.adapters.silt.engine.kernel.errors import ConcurrentModificationError, StorageError
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.scan.change_feed import changes_after
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitResult, CommitSettings, commit
from dbt.adapters.silt.engine.kernel.transaction.positions import Position, recorded_position
from dbt.adapters.silt.engine.kernel.transaction.restore import RestorePoint
from dbt.adapters.silt.engine.statements.resolve.changes_functions import Consumption, Options, consumed
from tests.faulty_store import Fault, FaultKind
from tests.memory_store import MemoryStore
from tests.simulation.interleaving import Scheduler, YieldingStore, random_order
from tests.simulation.rows_table import Rows, RowTwice, Writer

DAILY = RelationName("silt", "main", "daily")
Record = Callable[[Writer, Changes, Position], Changes]


class Warehouse:
    """A process with two tables: rows are only added to the first, and the second consumes its changes.

    Args:
        inputs, consumers: the stores of the two tables.
        seed: of the process; each process has a different seed.
    """

    def __init__(self, inputs: Any, consumers: Any, seed: int) -> None:
        self.input = Writer(inputs, seed)
        self.consumer = Writer(consumers, seed + 1000)

    def add(self, key: int) -> CommitResult:
        return self.input.append({key: key * 10})

    def compact(self) -> CommitResult | None:
        return self.input.compact()

    def consume(self, record: Record) -> CommitResult | None:
        """Adds the rows that were added to the input since the last commit of the consumer."""
        base, latest = self.consumer.snapshot(), self.input.snapshot()
        asked, position = consumed(
            self.input.log, latest, Options(None, None, ()), Consumption(DAILY, base, is_replaced=False)
        )
        rows = self.input.rows(latest) if asked.after is None else self._added(asked.after, latest)
        if not position.is_changed:
            return None
        adds = (self.consumer.write(rows),) if rows else ()
        changes = record(self.consumer, Changes(Operation("WRITE"), adds), position)
        return commit(self.consumer.log, base, changes, ReadSet(), CommitSettings())

    def _added(self, after: int, latest: Snapshot) -> Rows:
        changed = changes_after(self.input.log, after, latest)
        return self.input.read(file for each in changed.versions for file in each.inserted)

    def restore_consumer(self) -> object:
        base = self.consumer.snapshot()
        version = max(base.version - 2, 0)
        return restore(Target(base.table, self.consumer.log, base), RestorePoint(version), WriteSettings())


def with_position(consumer: Writer, changes: Changes, position: Position) -> Changes:
    return with_transaction(consumer.log, changes, WriteSettings(positions=(position,)))


def until_done(task: Callable[[], object]) -> None:
    """Runs a task again after a conflict, and after an end of the process whose commit may have succeeded."""
    while True:
        try:
            task()
        except (ConcurrentModificationError, StorageError):
            continue
        return


def live(seed: int, record: Record) -> Warehouse:
    """Lets processes write, compact, consume and restore in a random order; some commits fail or lose their answer."""
    inputs, consumers, scheduler = MemoryStore(), MemoryStore(), Scheduler()
    first = Warehouse(inputs, consumers, 1)
    first.input.create({1: 10})
    first.consumer.create()
    faults = [
        Fault("put_if_absent", kind, "*.json", times=3, probability=0.3)
        for kind in (FaultKind.FAIL_AFTER, FaultKind.FAIL_BEFORE)
    ]

    def process(number: int, *steps: Callable[[Warehouse], object]) -> Callable[[], None]:
        stores = (YieldingStore(inputs, scheduler), YieldingStore(consumers, scheduler, faults, seed))
        warehouse = Warehouse(*stores, seed=number)

        def run() -> None:
            for step in steps:
                until_done(partial(step, warehouse))

        return run

    consume = partial(Warehouse.consume, record=record)
    tasks = [
        process(
            2, *(partial(Warehouse.add, key=key) for key in (2, 3)), Warehouse.compact, partial(Warehouse.add, key=4)
        ),
        process(3, consume, consume, consume),
        process(4, consume, consume, consume),
        process(5, Warehouse.restore_consumer),
    ]
    ended = scheduler.run(tasks, random_order(seed))
    assert ended == [None] * len(tasks), (seed, ended)
    last = Warehouse(inputs, consumers, 9)
    last.consume(record)
    return last


def is_each_change_consumed_once(warehouse: Warehouse) -> bool:
    """Returns whether each version of the consumer has the rows of the version of the input that it has consumed."""
    table_id = warehouse.input.snapshot().metadata.id
    for version in range(warehouse.consumer.snapshot().version + 1):
        snapshot = warehouse.consumer.log.snapshot_at(version)
        position = recorded_position(snapshot, table_id)
        done = -1 if position is None else position.version
        expected = {} if done < 0 else warehouse.input.rows(warehouse.input.log.snapshot_at(done))
        try:
            found = warehouse.consumer.rows(snapshot)
        except RowTwice:
            return False
        if found != expected:
            return False
    return True


@pytest.mark.parametrize("seed", range(40))
def test_each_version_of_the_consumer_has_the_rows_of_its_position(seed: int) -> None:
    warehouse = live(seed, with_position)
    assert is_each_change_consumed_once(warehouse)
    assert warehouse.consumer.rows() == warehouse.input.rows()


def test_a_position_in_a_separate_commit_is_found() -> None:
    """A planted bug: the rows and the position are two commits."""

    def apart(consumer: Writer, changes: Changes, position: Position) -> Changes:
        commit(consumer.log, consumer.snapshot(), changes, ReadSet(), CommitSettings())
        return with_position(consumer, Changes(Operation("WRITE")), position)

    assert not all(is_each_change_consumed_once(live(seed, apart)) for seed in range(5))
