"""The requests of clients: random transactions on a few keys at a time, each determined by seed, client and number."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from tests.histories.history import (
    Add,
    Append,
    Declare,
    Delete,
    History,
    Insert,
    Key,
    Level,
    Operation,
    Read,
    Transaction,
    Transfer,
    with_reads,
)

ACCOUNTS: Final = 6
BALANCE: Final = 100
_WINDOW = 25
"""After how many transactions a client uses other keys, so that lists remain short."""
_LISTS, _SETS, _CLAIMS = 3, 2, 4
_DELETED, _DECLARED = 8, 9
_COUNTER, _ACCOUNT, _DECOY, _CLAIM = 1_000_000, 2_000_000, 2_500_000, 3_000_000
DECOYS: Final = 4
MAINTENANCE: Final = ("optimize", "vacuum", "checkpoint", "delete decoys", "insert decoys")


@dataclass(frozen=True)
class Request:
    """The request of a client in a statement.

    Attributes:
        kind: `append`, `insert`, `delete`, `declare`, `add`, `transfer`, `read`, `transaction`, `upkeep`, or one of
            MAINTENANCE; the first statement of a transaction can be a `claim`: it inserts into a set, after a statement
            that changes the rows of the set to the same rows. If that finds no row, it changes nothing, and has read
            the empty set.
        table: the table that it changes; of a read, one of its tables; of a transaction, the first that it changes.
        writes: what it writes.
        lists, sets: what it reads, in the same statement.
        counters: what it reads, only by a `read`.
        totals: the tables whose accounts a `read` sums up.
        statements: the statements of a `transaction`, which write `writes` together.
    """

    kind: str
    table: str
    writes: tuple[Operation, ...] = ()
    lists: tuple[Key, ...] = ()
    sets: tuple[Key, ...] = ()
    counters: tuple[Key, ...] = ()
    totals: tuple[str, ...] = ()
    statements: tuple[Request, ...] = ()

    @property
    def keys(self) -> tuple[Key, ...]:
        return (*self.lists, *self.sets)


@dataclass(frozen=True)
class Observed:
    """What a client saw.

    Attributes:
        reads: the answers to a `read`.
        stored: for elements that it read, what the statements that wrote them have read.
    """

    reads: tuple[Operation, ...] = ()
    stored: Mapping[int, tuple[Read, ...]] = field(default_factory=dict)


WEIGHTS: Final[Mapping[str, float]] = {
    "append": 4,
    "append and read": 3,
    "insert": 3,
    "insert and read": 3,
    "delete": 2,
    "declare": 0.5,
    "declare and read": 0.5,
    "add": 1,
    "transfer": 1,
    "read": 4,
    **dict.fromkeys(MAINTENANCE, 0.3),
}
"""How often each kind of request is drawn by default; `and read` also reads keys in the same statement."""

WITH_TRANSACTIONS: Final[Mapping[str, float]] = {**WEIGHTS, "transaction": 4, "claim": 1}
"""The same with transactions of several statements, on several tables."""

_IN_TRANSACTIONS: Final = ("append", "append and read", "insert", "insert and read", "delete", "add", "transfer")
_MOST_WRITES: Final = 2
"""The number of elements that a statement writes at most."""


@dataclass(frozen=True)
class Workload:
    """The transactions of all clients.

    Attributes:
        length: how many transactions each client executes.
        levels: the tables, with their isolation levels.
        other_tables: whether a statement that writes may also read other tables.
        weights: how often each kind of request is drawn, by `KINDS`.
    """

    seed: int
    clients: int
    length: int
    levels: Mapping[str, Level]
    other_tables: bool = True
    weights: Mapping[str, float] = field(default_factory=lambda: WEIGHTS)

    @property
    def tables(self) -> tuple[str, ...]:
        return tuple(self.levels)

    @property
    def windows(self) -> int:
        return (self.length - 1) // _WINDOW + 1

    def lists_of(self, window: int) -> range:
        return range(10 * window, 10 * window + _LISTS)

    def sets_of(self, window: int) -> range:
        return range(10 * window + 5, 10 * window + 5 + _SETS)

    def claims_of(self, window: int) -> range:
        return range(_CLAIM + 10 * window + 5, _CLAIM + 10 * window + 5 + _CLAIMS)

    def all_sets_of(self, window: int) -> tuple[int, ...]:
        """The sets, also the set of deleted rows and, if the workload has them, the set of the metadata and claims."""
        declared = (10 * window + _DECLARED,) if any(kind.startswith("declare") for kind in self.weights) else ()
        claims = self.claims_of(window) if "claim" in self.weights else ()
        return (*self.sets_of(window), 10 * window + _DELETED, *declared, *claims)

    def rows_to_delete(self) -> Mapping[Key, list[int]]:
        """The rows that exist in the beginning, each to be deleted by one request."""
        found: dict[Key, list[int]] = {}
        for write in (each for client in range(self.clients) for one in self.requests(client) for each in one.writes):
            if isinstance(write, Delete):
                found.setdefault(write.key, []).append(write.element)
        return found

    def requests(self, client: int) -> list[Request]:
        """The requests of a client, the same whenever they are asked for."""
        chance = random.Random(f"{self.seed}/{client}")
        return [_Draw(self, chance, client, number).request() for number in range(self.length)]

    def final_reads(self) -> Iterator[Request]:
        """The requests of a last client, which reads all keys."""
        for window in range(self.windows):
            lists = tuple(Key(table, number) for table in self.tables for number in self.lists_of(window))
            sets = tuple(Key(table, number) for table in self.tables for number in self.all_sets_of(window))
            counters = tuple(Key(table, counter(window)) for table in self.tables)
            yield Request("read", self.tables[0], (), lists, sets, counters, self.tables)

    def history(self, transactions: list[Transaction], stored: Mapping[int, tuple[Read, ...]]) -> History:
        totals = dict.fromkeys(self.tables, ACCOUNTS * BALANCE)
        return History(tuple(with_reads(transactions, stored)), self.levels, totals)


def counter(window: int) -> int:
    return _COUNTER + window


def is_deleted(key: Key) -> bool:
    """Whether the key is a set of deleted rows."""
    return key.number < _COUNTER and key.number % 10 == _DELETED


def is_declared(key: Key) -> bool:
    """Whether the key is a set in the metadata."""
    return key.number < _COUNTER and key.number % 10 == _DECLARED


def account(number: int) -> int:
    return _ACCOUNT + number


def is_account(number: int) -> bool:
    return _ACCOUNT <= number < _ACCOUNT + ACCOUNTS


def decoy(window: int) -> int:
    """Rows that belong to no key, next to the keys of a window."""
    return _DECOY + window


@dataclass(frozen=True)
class _Draw:
    """The choices for one request."""

    workload: Workload
    chance: random.Random
    client: int
    number: int

    @property
    def window(self) -> int:
        return self.number // _WINDOW

    def request(self) -> Request:
        kind = self.chance.choices(list(self.workload.weights), list(self.workload.weights.values()))[0]
        table = self.chance.choice(self.workload.tables)
        if kind == "read":
            return self._read(table)
        if kind in (*MAINTENANCE, "upkeep"):
            return Request(kind, table)
        if kind in ("transaction", "claim"):
            return self._transaction(kind == "claim")
        return self._statement(kind, table)

    def _transaction(self, claims: bool) -> Request:
        """Two or three statements, each on any table; the first claims a set if the transaction `claims`."""
        tables = self.workload.tables
        statements = tuple(
            self._statement(
                "claim" if claims and number == 0 else self.chance.choice(_IN_TRANSACTIONS),
                self.chance.choice(tables),
                _MOST_WRITES * number,
            )
            for number in range(self.chance.choice((2, 2, 3)))
        )
        writes = tuple(write for each in statements for write in each.writes)
        return Request("transaction", statements[0].table, writes, statements=statements)

    def _statement(self, kind: str, table: str, first: int = 0) -> Request:
        """A statement that writes; `first` is the number of its first element among those of the request."""
        if kind in ("add", "transfer"):
            return Request(kind, table, (self._of_numbers(kind, table),))
        lists, sets = self._read_beside(table) if kind.endswith("read") else ((), ())
        kind = kind.partition(" ")[0]
        return Request(kind, table, tuple(self._writes(kind, table, first)), lists, sets)

    def _writes(self, kind: str, table: str, first: int) -> Iterator[Operation]:
        if kind in ("delete", "declare"):
            number = 10 * self.window + (_DELETED if kind == "delete" else _DECLARED)
            yield (Delete if kind == "delete" else Declare)(Key(table, number), self._element(first))
            return
        if kind == "claim":
            yield Insert(Key(table, self.chance.choice(self.workload.claims_of(self.window))), self._element(first))
            return
        keys = self._lists(table) if kind == "append" else self._sets(table)[:1] * _MOST_WRITES
        for place, key in enumerate(self.chance.sample(keys, self.chance.choice((1, 1, _MOST_WRITES))), first):
            yield (Append if kind == "append" else Insert)(key, self._element(place))

    def _element(self, place: int) -> int:
        return (self.client + 1) * 10_000_000 + self.number * 10 + place

    def _of_numbers(self, kind: str, table: str) -> Operation:
        if kind == "add":
            return Add(Key(table, counter(self.window)), self.chance.randrange(1, 10))
        source, target = self.chance.sample(range(ACCOUNTS), 2)
        return Transfer(Key(table, account(source)), Key(table, account(target)), self.chance.randrange(1, 10))

    def _read(self, table: str) -> Request:
        tables = self.workload.tables if self.chance.random() < 0.5 else (table,)
        lists = tuple(key for each in tables for key in self._lists(each))
        sets = tuple(Key(each, number) for each in tables for number in self.workload.all_sets_of(self.window))
        counters = tuple(Key(each, counter(self.window)) for each in tables)
        return Request("read", table, (), lists, sets, counters, tables)

    def _read_beside(self, table: str) -> tuple[tuple[Key, ...], tuple[Key, ...]]:
        """Up to two keys, of the table that is written or of another."""
        others = self.workload.tables if self.workload.other_tables else (table,)
        read_table = table if self.chance.random() < 0.6 else self.chance.choice(others)
        number_of_lists = self.chance.choice((0, 1, 1, 2))
        deleted = Key(read_table, 10 * self.window + _DELETED)
        sets = self.chance.sample([*self._sets(read_table)[:1], deleted], self.chance.choice((0, 1, 2)))
        return tuple(self._lists(read_table)[:number_of_lists]), tuple(sets)

    def _lists(self, table: str) -> list[Key]:
        numbers = self.workload.lists_of(self.window)
        return [Key(table, number) for number in self.chance.sample(numbers, len(numbers))]

    def _sets(self, table: str) -> list[Key]:
        numbers = self.workload.sets_of(self.window)
        return [Key(table, number) for number in self.chance.sample(numbers, len(numbers))]
