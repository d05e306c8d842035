"""The door of SQL: each request is one statement of a `Warehouse`, or a read by Arrow without Spark.

Each table has a row for each list, counter, account and row to delete, and a row for each element of a set. A list is a
text with an entry for each element; an entry, and the row of an element, also have what their statement has read.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from dbt.adapters.silt.engine import SiltError, Warehouse, read
from dbt.adapters.silt.engine.kernel.errors import CommitStateUnknownError
from tests.histories.client import NotApplied, NotKnown, Unit, reads_of_rows
from tests.histories.history import Add, Append, Delete, Insert, Key, Read, Transfer
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
    is_deleted,
)

_ENTRY: Final = re.compile(r"(\d+)(?:<([^>]*)>)?,")
_COLUMNS: Final = ("key", "element", "list", "amount")


@dataclass(frozen=True)
class SqlDoor:
    """The tables of a warehouse.

    Attributes:
        location: the warehouse's folder, for reads by Arrow; None for reads by Spark only.
        rows_to_delete: the rows that a set of deleted rows has in the beginning.
        chance: which of the statements with the same meaning is used.
        before_commit: called when the statements of a transaction have run.
    """

    warehouse: Warehouse
    rows_to_delete: Mapping[Key, Sequence[int]]
    chance: random.Random
    location: str | None = None
    before_commit: Callable[[], object] = bool

    def create(self, workload: Workload, properties: Mapping[str, str]) -> None:
        """Creates the tables, with the rows of all lists, counters and accounts, and the rows to delete."""
        for table in workload.tables:
            own = {**properties, "delta.isolationLevel": workload.levels[table].value}
            listed = ", ".join(f"'{name}' = '{value}'" for name, value in own.items())
            columns = "key bigint, element bigint, list string, amount bigint"
            self.warehouse.sql(f"create table {table} ({columns}) tblproperties ({listed})")
            rows = ", ".join(_first_rows(workload, table))
            self.warehouse.sql(f"insert into {table} values {rows}")

    def execute(self, request: Request, unit: Unit | None) -> Observed:
        try:
            if request.kind == "read":
                return self._read(request)
            if request.kind == "transaction":
                return self._transaction(request, unit)
            self.warehouse.sql(self._statement(request), txn=unit)
        except CommitStateUnknownError as error:
            raise NotKnown from error
        except SiltError as error:
            raise NotApplied from error
        return Observed()

    def _transaction(self, request: Request, unit: Unit | None) -> Observed:
        with self.warehouse.transaction(txn=unit) as together:
            inside = replace(self, warehouse=together)
            found = [read for each in request.statements for read in inside._part(each)]
            self.before_commit()
        return Observed(tuple(found))

    def _part(self, request: Request) -> Iterator[Read]:
        """Runs a statement of a transaction; yields that a set is empty, if a statement has found none of its rows."""
        if request.kind == "claim":
            ((write),) = request.writes
            assert isinstance(write, Insert)
            outcome = self.warehouse.execute(self._touch(write.key)).outcome
            if outcome is not None and not outcome.skipped and not outcome.rows_updated:
                yield Read(write.key, (), is_list=False)
        self.warehouse.sql(self._statement(request))

    def _touch(self, key: Key) -> str:
        """A statement that changes the rows of a set to the same rows."""
        if self.chance.random() < 0.5:
            return f"update {key.table} set amount = amount where key = {key.number}"
        return (
            f"merge into {key.table} t using (select {key.number}L as key) s on t.key = s.key "
            "when matched then update set amount = t.amount"
        )

    def _statement(self, request: Request) -> str:
        table, writes = request.table, request.writes
        match request.kind:
            case "append":
                return self._append(request, [each for each in writes if isinstance(each, Append)])
            case "insert" | "claim":
                return _insert(request, [each for each in writes if isinstance(each, Insert)])
            case "add" | "transfer":
                return self._amounts(table, *writes)
            case "delete":
                return "".join(_delete(table, each) for each in writes if isinstance(each, Delete))
            case "delete decoys":
                return f"delete from {table} where key = {decoy(self.chance.randrange(DECOYS))}"
            case "insert decoys":
                rows = ", ".join(f"({decoy(place)}, 0, '', 0)" for place in range(DECOYS))
                return f"insert into {table} values {rows}"
            case "checkpoint":
                return f"describe history {table}"
            case kind:
                return f"{kind} {table}"

    def _append(self, request: Request, appends: Sequence[Append]) -> str:
        table = request.table
        if not request.keys and self.chance.random() < 0.7:
            cases = " ".join(f"when {each.key.number} then '{each.element},'" for each in appends)
            numbers = ", ".join(str(each.key.number) for each in appends)
            return f"update {table} set list = concat(list, case key {cases} end) where key in ({numbers})"
        values = ", ".join(f"({each.key.number}L, '{each.element}')" for each in appends)
        return (
            f"merge into {table} t using (select key, concat(entry, '<', {_seen(request)}, '>,') as entry "
            f"from values {values} as v(key, entry)) s on t.key = s.key "
            "when matched then update set list = concat(t.list, s.entry)"
        )

    def _amounts(self, table: str, write: Any) -> str:
        changes = {write.key: write.amount} if isinstance(write, Add) else {}
        if isinstance(write, Transfer):
            changes = {write.source: -write.amount, write.target: write.amount}
        if self.chance.random() < 0.5:
            cases = " ".join(f"when {key.number} then {amount}" for key, amount in changes.items())
            numbers = ", ".join(str(key.number) for key in changes)
            return f"update {table} set amount = amount + case key {cases} end where key in ({numbers})"
        values = ", ".join(f"({key.number}L, {amount}L)" for key, amount in changes.items())
        return (
            f"merge into {table} t using (select * from values {values} as v(key, change)) s on t.key = s.key "
            "when matched then update set amount = t.amount + s.change"
        )

    def _read(self, request: Request) -> Observed:
        keys = (*request.keys, *request.counters)
        conditions = {
            table: _condition([key.number for key in keys if key.table == table], table in request.totals)
            for table in dict.fromkeys((*(key.table for key in keys), *request.totals))
        }
        return _observed(request, list(self._rows(conditions)), self.rows_to_delete)

    def _rows(self, conditions: Mapping[str, str]) -> Iterator[tuple[str, int, int, str, int]]:
        if len(conditions) == 1 and self.location is not None and self.chance.random() < 0.7:
            ((table, condition),) = conditions.items()
            for row in read(f"main.{table}", warehouse=self.location, where=condition).to_pylist():
                yield (table, *(row[column] for column in _COLUMNS))
            return
        text = " union all ".join(
            f"select '{table}' as name, key, element, list, amount from {table} where {condition}"
            for table, condition in conditions.items()
        )
        yield from (tuple(row) for row in self.warehouse.sql(text).collect())


def _first_rows(workload: Workload, table: str) -> Iterator[str]:
    for window in range(workload.windows):
        yield from (f"({number}, 0, '', 0)" for number in (*workload.lists_of(window), counter(window)))
    yield from (f"({account(number)}, 0, '', {BALANCE})" for number in range(ACCOUNTS))
    for key, elements in workload.rows_to_delete().items():
        yield from (f"({key.number}, {element}, '', 0)" for element in elements if key.table == table)


def _insert(request: Request, inserts: Sequence[Insert]) -> str:
    if not request.keys:
        rows = ", ".join(f"({each.key.number}, {each.element}, '', 0)" for each in inserts)
        return f"insert into {request.table} values {rows}"
    values = ", ".join(f"({each.key.number}L, {each.element}L)" for each in inserts)
    return (
        f"insert into {request.table} select key, element, {_seen(request)}, 0L from values {values} as v(key, element)"
    )


def _delete(table: str, write: Delete) -> str:
    return f"delete from {table} where key = {write.key.number} and element = {write.element}"


def _seen(request: Request) -> str:
    """An expression for what the statement reads: `table/key:element.element` for each key, with `|` between them."""
    if not request.keys:
        return "''"
    lists = (
        f"(select concat('{key}:', regexp_replace(regexp_replace(max(list), '<[^>]*>', ''), ',', '.')) "
        f"from {key.table} where key = {key.number})"
        for key in request.lists
    )
    sets = (
        f"(select concat('{key}:', array_join(array_sort(collect_list(element)), '.')) "
        f"from {key.table} where key = {key.number})"
        for key in request.sets
    )
    return f"concat_ws('|', {', '.join((*lists, *sets))})"


def _condition(numbers: Sequence[int], has_accounts: bool) -> str:
    accounts = f"key >= {account(0)} and key < {account(ACCOUNTS)}"
    keys = f"key in ({', '.join(map(str, numbers))})"
    return " or ".join([*([keys] if numbers else []), *([f"({accounts})"] if has_accounts else [])])


def _observed(
    request: Request, rows: Iterable[tuple[str, int, int, str, int]], rows_to_delete: Mapping[Key, Sequence[int]]
) -> Observed:
    elements: dict[Any, list[int]] = {key: [] for key in request.keys}
    numbers: dict[Any, int] = dict.fromkeys((*request.counters, *request.totals), 0)
    stored: dict[int, tuple[Read, ...]] = {}
    for table, number, element, text, amount in sorted(rows):
        key = Key(table, number)
        if key in request.lists:
            for entry, seen in _ENTRY.findall(text):
                elements[key].append(int(entry))
                stored[int(entry)] = _parsed(seen, rows_to_delete)
        elif key in request.sets:
            elements[key].append(element)
            stored[element] = _parsed(text, rows_to_delete)
        elif key in request.counters:
            numbers[key] += amount
        elif table in request.totals:
            numbers[table] += amount
    for key in request.sets:
        if is_deleted(key):
            elements[key] = _deleted(key, elements[key], rows_to_delete)
    return Observed(reads_of_rows(request, elements, numbers), stored)


def _parsed(seen: str, rows_to_delete: Mapping[Key, Sequence[int]]) -> tuple[Read, ...]:
    """The reads that a statement has stored."""
    return tuple(_read_of(text, rows_to_delete) for text in seen.split("|") if text)


def _read_of(text: str, rows_to_delete: Mapping[Key, Sequence[int]]) -> Read:
    name, _, listed = text.partition(":")
    table, _, number = name.partition("/")
    key, elements = Key(table, int(number)), [int(each) for each in listed.split(".") if each]
    if is_deleted(key):
        elements = _deleted(key, elements, rows_to_delete)
    return Read(key, tuple(elements), is_list=key.number % 10 < 5)


def _deleted(key: Key, present: Sequence[int], rows_to_delete: Mapping[Key, Sequence[int]]) -> list[int]:
    return sorted(set(rows_to_delete.get(key, ())).difference(present))
