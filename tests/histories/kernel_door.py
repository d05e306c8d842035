"""The door of the kernel: statements in Python on its real commit, without Spark, for many transactions in short time.

Each key has an interval of row ids: first the row of a list, a counter or an account, then the rows of a set.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from dbt.adapters.silt.engine.catalog.branches.branch import Branch
from dbt.adapters.silt.engine.commands.commit import note_reads
from dbt.adapters.silt.engine.commands.target import WriteSettings
from dbt.adapters.silt.engine.kernel.clock import Clock
from dbt.adapters.silt.engine.kernel.errors import (
    CommitAttemptsExhaustedError,
    CommitStateUnknownError,
    ConcurrentModificationError,
    SiltError,
    StorageError,
)
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.publication.publications import Publications
from dbt.adapters.silt.engine.kernel.scan import consistent_cut, skipping
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing, Store
from dbt.adapters.silt.engine.kernel.table.actions import SetTransaction
from dbt.adapters.silt.engine.kernel.table.expressions import And, Column, Comparison, Expression, Or
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER
from dbt.adapters.silt.engine.kernel.transaction.branch_log import BranchLog
from dbt.adapters.silt.engine.kernel.transaction.changes import ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings
from tests.histories.client import NotApplied, NotKnown, Unit, reads_of_rows
from tests.histories.history import Add, Append, Declare, Delete, Insert, Key, Read, Transfer, from_json, to_json
from tests.histories.workload import (
    ACCOUNTS,
    BALANCE,
    DECOYS,
    Observed,
    Request,
    Workload,
    account,
    counter,
    decoy,
    is_declared,
    is_deleted,
)
from tests.simulation.rows_table import Rows, RowsTable, RowTwice
from tests.simulation.warehouse.actions import remove_garbage
from tests.simulation.warehouse.upkeep import upkeep

_WIDTH: Final = 10**12
_RUNS: Final = 5
_SETTINGS: Final = CommitSettings(max_attempts=50)
_CHECKPOINTS: Final = 7
_MOST_FILES: Final = 12
_NEAR: Final = 100
_UPKEEP_SIZE: Final = 1000
_PREFIX: Final = "histories."


@dataclass
class Pinned(RowsTable):
    """A table whose statements are based on a given snapshot."""

    base: Snapshot | None = None

    def snapshot(self) -> Snapshot:
        return self.base or super().snapshot()


@dataclass(frozen=True)
class KernelDoor:
    """The tables by their names.

    Attributes:
        rows_to_delete: the rows that a set of deleted rows has in the beginning.
        register: the publications of the tables' database.
    """

    logs: Mapping[str, DeltaLog]
    rows_to_delete: Mapping[Key, Sequence[int]]
    register: Publications

    @classmethod
    def over(cls, store: Store, workload: Workload, clock: Clock) -> KernelDoor:
        """The door to the tables of a workload, each in the folder of its name."""
        register = Publications(store, clock, at_once=1)
        logs = {table: DeltaLog(store.child(table), f"bank.{table}", clock) for table in workload.tables}
        for log in logs.values():
            log.publications = register
        return cls(logs, workload.rows_to_delete(), register)

    def create(self, workload: Workload) -> None:
        """Creates the tables, with the rows of all lists, counters and accounts, and the rows to delete."""
        for table, log in self.logs.items():
            log.store.make_folder(LOG_FOLDER)
            configuration = {
                "delta.isolationLevel": workload.levels[table].value,
                "delta.checkpointInterval": str(_CHECKPOINTS),
            }
            RowsTable(log, _SETTINGS).create(*_first_files(workload, table), configuration=configuration)

    def execute(self, request: Request, unit: Unit | None) -> Observed:
        for _ in range(_RUNS):
            try:
                return self._run(request, unit)
            except (ConcurrentModificationError, CommitAttemptsExhaustedError):
                continue
            except CommitStateUnknownError as error:
                raise NotKnown from error
            except (SiltError, ObjectMissing, RowTwice) as error:
                raise NotApplied from error
        raise NotApplied

    def _run(self, request: Request, unit: Unit | None) -> Observed:
        if request.kind == "transaction":
            return Observed(tuple(self._run_together(request, unit)))
        tables = (request.table, *(key.table for key in request.keys), *(key.table for key in request.counters))
        logs = [self.logs[table] for table in dict.fromkeys((*tables, *request.totals))]
        cut = consistent_cut.consistent_cut(logs)
        pins = {table: Pinned(log, _SETTINGS, cut[log]) for table, log in self.logs.items() if log in cut}
        if request.kind == "read":
            return _read(request, pins, self.rows_to_delete)
        if unit is None or (cut[self.logs[request.table]].transaction_version(unit[0]) or 0) < unit[1]:
            _Statement(request, pins, unit, self.rows_to_delete).run()
        return Observed()

    def _run_together(self, request: Request, unit: Unit | None) -> list[Read]:
        """Executes the statements of a transaction on a branch, and publishes it; returns what they have read."""
        found: list[Read] = []
        branch = Branch(self.register)
        pins = {table: Pinned(branch.log(log), _SETTINGS) for table, log in self.logs.items()}
        try:
            for each in request.statements:
                log = pins[each.table].log
                assert isinstance(log, BranchLog)
                if unit is None or (base := log.base()) is None or not base.holds(unit):
                    statement = _Statement(each, pins, None, self.rows_to_delete)
                    found += statement.looked_for()
                    statement.run()
            branch.publish(unit)
            return found
        except (CommitStateUnknownError, StorageError):
            raise  # a late commit may still arrive, and needs its files
        except SiltError:
            branch.discard()
            raise


@dataclass(frozen=True)
class _Statement:
    """One statement on its pinned tables."""

    request: Request
    pins: Mapping[str, Pinned]
    unit: Unit | None
    rows_to_delete: Mapping[Key, Sequence[int]]

    @property
    def table(self) -> Pinned:
        return self.pins[self.request.table]

    @property
    def txn(self) -> SetTransaction | None:
        return None if self.unit is None else SetTransaction(*self.unit)

    def run(self) -> None:
        match self.request.kind:
            case "append":
                self._append()
            case "insert" | "claim":
                self._insert()
            case "delete":
                ((write),) = self.request.writes
                assert isinstance(write, Delete)
                row = _low(write.key.number) + write.element
                self.table.rewrite_all(_between(row, row + 1), lambda _: {}, "DELETE", self.txn)
            case "declare":
                self._declare()
            case "add" | "transfer":
                self._change_amounts()
            case "optimize":
                clock = self.table.log.clock
                first = -1 - int(clock.jitter() * _MOST_FILES)
                self.table.compact(slice(first, first + 1 + int(clock.jitter() * 3) or None))
            case "upkeep":
                upkeep(self.table, target_size=_UPKEEP_SIZE)
            case "vacuum":
                remove_garbage(self.table.log)
            case "checkpoint":
                self.table.log.checkpoint(self.table.snapshot())
            case "delete decoys":
                self.table.rewrite(_between(_low(decoy(0)), _low(decoy(DECOYS))), lambda *_: None, "DELETE")
            case "insert decoys":
                new = self.table.log.clock.jitter()
                self.table.append({_low(decoy(place)) + int(new * 10**9): 0 for place in range(DECOYS)})

    def looked_for(self) -> Iterator[Read]:
        """Looks for the rows of a set that is claimed, without a change; yields that the set is empty, if it is."""
        if self.request.kind == "claim":
            keys = [each.key for each in self.request.writes if isinstance(each, Insert)]
            note_reads(self.table.log, ReadSet((_of_keys(keys),)), WriteSettings())
            found = (self._of_key(key, list(_rows_of(self.table, keys))) for key in keys)
            yield from (each for each in found if not each.elements)

    def _own_keys(self) -> tuple[Key, ...]:
        return tuple(key for key in self.request.keys if key.table == self.request.table)

    def _append(self) -> None:
        appends = [each for each in self.request.writes if isinstance(each, Append)]
        elsewhere = self._read_elsewhere()

        def changed(rows: Rows) -> Rows:
            reads = (*elsewhere, *self._reads(self._own_keys(), rows.items()))
            after: dict[int, Any] = dict(rows)
            for each in appends:
                row = after[_low(each.key.number)]
                entry = [each.element, to_json(reads)]
                after[_low(each.key.number)] = {**row, "list": [*row["list"], entry]}
            return after

        keys = (*(each.key for each in appends), *self._own_keys())
        self.table.rewrite_all(_of_keys(keys), changed, "MERGE", self.txn)

    def _insert(self) -> None:
        inserts = [each for each in self.request.writes if isinstance(each, Insert)]
        elsewhere = self._read_elsewhere()

        def new(rows: Rows) -> Rows:
            reads = to_json((*elsewhere, *self._reads(self._own_keys(), rows.items())))
            found: Any = {_low(each.key.number) + each.element: {"reads": reads} for each in inserts}
            return found

        own = self._own_keys()
        if own:
            self.table.insert_if(_of_keys(own), new, self.txn)
        else:
            self.table.append(new({}), self.txn)

    def _declare(self) -> None:
        ((write),) = self.request.writes
        assert isinstance(write, Declare)
        name, elsewhere = f"{_PREFIX}{write.key.number}.{write.element}", self._read_elsewhere()
        if name in self.table.snapshot().metadata.configuration:
            return  # a repeated statement must not store what it reads now
        own = self._own_keys()
        if not own:
            self.table.set_property(name, json.dumps(to_json(elsewhere)))
            return
        self.table.set_property(name, lambda rows: json.dumps(to_json((*elsewhere, *self._reads(own, rows.items())))))

    def _reads(self, keys: Iterable[Key], rows: Iterable[tuple[int, Any]]) -> tuple[Read, ...]:
        rows = list(rows)
        return tuple(self._of_key(key, rows) for key in keys)

    def _of_key(self, key: Key, rows: Sequence[tuple[int, Any]]) -> Read:
        elements, _ = _elements(key, rows)
        if is_deleted(key):
            elements = sorted(set(self.rows_to_delete.get(key, ())).difference(elements))
        return Read(key, tuple(elements), is_list=key in self.request.lists)

    def _read_elsewhere(self) -> tuple[Read, ...]:
        own = set(self._own_keys())
        found: list[Read] = []
        for table in dict.fromkeys(key.table for key in self.request.keys if key not in own):
            keys = [key for key in self.request.keys if key.table == table]
            log = self.pins[table].log
            if isinstance(log, BranchLog):
                log.note(ReadSet((_of_keys(keys),)))
            found += self._reads(keys, _rows_of(self.pins[table], keys))
        return tuple(found)

    def _change_amounts(self) -> None:
        (write,) = self.request.writes
        changes = {}
        if isinstance(write, Add):
            changes = {write.key: write.amount}
        elif isinstance(write, Transfer):
            changes = {write.source: -write.amount, write.target: write.amount}

        def changed(rows: Rows) -> Rows:
            after: dict[int, Any] = dict(rows)
            for key, amount in changes.items():
                row = after[_low(key.number)]
                after[_low(key.number)] = {**row, "amount": row["amount"] + amount}
            return after

        self.table.rewrite_all(_of_keys(tuple(changes)), changed, "UPDATE", self.txn)


def _first_files(workload: Workload, table: str) -> Iterator[Mapping[int, Any]]:
    yield {_low(account(number)): {"list": [], "amount": BALANCE} for number in range(ACCOUNTS)}
    for window in range(workload.windows):
        lists = list(workload.lists_of(window))
        yield {_low(number): {"list": [], "amount": 0} for number in lists[:2]}
        yield {_low(number): {"list": [], "amount": 0} for number in lists[2:]}
        yield {_low(counter(window)): {"list": [], "amount": 0}}
    for key, elements in workload.rows_to_delete().items():
        if key.table == table:
            yield from ({_low(key.number) + element: {"reads": []}} for element in elements)


def _read(request: Request, pins: Mapping[str, Pinned], rows_to_delete: Mapping[Key, Sequence[int]]) -> Observed:
    elements: dict[Any, list[int]] = {}
    numbers: dict[Any, int] = {}
    stored: dict[int, tuple[Read, ...]] = {}
    keys = (*request.keys, *request.counters)
    totals = tuple(Key(table, account(number)) for table in request.totals for number in range(ACCOUNTS))
    for table, pinned in pins.items():
        of_table = [key for key in (*keys, *totals) if key.table == table]
        rows = list(_rows_of(pinned, of_table))
        for key in of_table:
            found, reads = _declared(key, pinned.snapshot()) if is_declared(key) else _elements(key, rows)
            if is_deleted(key):
                found = sorted(set(rows_to_delete.get(key, ())).difference(found))
            elements[key] = found
            stored.update(reads)
            numbers[key] = sum(value["amount"] for id_, value in rows if id_ == _low(key.number))
        numbers[table] = sum(numbers[key] for key in totals if key.table == table)
    return Observed(reads_of_rows(request, elements, numbers), stored)


def _elements(key: Key, rows: Sequence[tuple[int, Any]]) -> tuple[list[int], dict[int, tuple[Read, ...]]]:
    """The elements of a key, of a set in the order of their numbers, and the reads that are stored with them."""
    entries: list[tuple[int, Any]] = []
    for id_, value in sorted(rows, key=lambda row: row[0]):
        if id_ == _low(key.number):
            entries += value["list"]
        elif id_ // _WIDTH == key.number:
            entries.append((id_ % _WIDTH, value["reads"]))
    stored = {element: _parsed(reads) for element, reads in entries}
    return [element for element, _ in entries], stored


def _declared(key: Key, snapshot: Snapshot) -> tuple[list[int], dict[int, tuple[Read, ...]]]:
    """The same of a set in the metadata."""
    start = f"{_PREFIX}{key.number}."
    properties = {name: value for name, value in snapshot.metadata.configuration.items() if name.startswith(start)}
    stored = {int(name.removeprefix(start)): _parsed(json.loads(value)) for name, value in properties.items()}
    return sorted(stored), stored


def _parsed(reads: Any) -> tuple[Read, ...]:
    return tuple(each for each in from_json(reads) if isinstance(each, Read))


def _rows_of(pinned: Pinned, keys: Sequence[Key]) -> Iterator[tuple[int, Any]]:
    """The rows of files that may have the keys; a row that is in two files is found twice."""
    base = pinned.snapshot()
    for add in base.add_files(skipping.prune(base, _around(keys))):
        yield from json.loads(pinned.log.store.read(add.path))


def _around(keys: Sequence[Key]) -> Expression:
    """A condition for the keys and for some keys between them: many conditions would take long."""
    numbers = sorted({key.number for key in keys})
    starts = [numbers[0], *(after for before, after in pairwise(numbers) if after - before > _NEAR)]
    ends = [*(before for before, after in pairwise(numbers) if after - before > _NEAR), numbers[-1]]
    return _any([_between(_low(start), _low(end + 1)) for start, end in zip(starts, ends, strict=True)])


def _of_keys(keys: Sequence[Key]) -> Expression:
    return _any([_between(_low(key.number), _low(key.number + 1)) for key in keys])


def _any(conditions: Sequence[Expression]) -> Expression:
    return conditions[0] if len(conditions) == 1 else Or(tuple(conditions))


def _between(low: int, high: int) -> Expression:
    return And((Comparison(">=", Column.of("id"), low), Comparison("<", Column.of("id"), high)))


def _low(number: int) -> int:
    return number * _WIDTH
