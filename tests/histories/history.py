"""A history of transactions: what clients asked for, what they got, and when.

The values are independent of the engine: an element is a unique number that some client appended to a list or inserted
into a set, and a key names the list, the set, the counter or the account.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Final


class Level(enum.Enum):
    """The isolation levels of the product, with its names."""

    SERIALIZABLE = "Serializable"
    WRITE_SERIALIZABLE = "WriteSerializable"
    SNAPSHOT = "SnapshotIsolation"


class Answer(enum.Enum):
    """The client's knowledge about a transaction in the end."""

    OK = "ok"
    FAILED = "failed"
    """An error which promises that nothing was applied."""
    UNKNOWN = "unknown"
    """The client was killed, or the answer was lost, and the transaction was not repeated."""


@dataclass(frozen=True, order=True)
class Key:
    """A list, a set, a counter or an account of a table."""

    table: str
    number: int

    def __str__(self) -> str:
        return f"{self.table}/{self.number}"


@dataclass(frozen=True)
class Append:
    """Appends an element to the list of a key."""

    key: Key
    element: int


@dataclass(frozen=True)
class Insert:
    """Inserts an element into the set of a key."""

    key: Key
    element: int


@dataclass(frozen=True)
class Delete:
    """Deletes a row: its number becomes an element of the set of deleted rows of a key."""

    key: Key
    element: int


@dataclass(frozen=True)
class Declare:
    """Inserts an element into the set of a key by a change of the table's metadata."""

    key: Key
    element: int


@dataclass(frozen=True)
class Read:
    """Reads the list or the set of a key: the elements, a list's in its order."""

    key: Key
    elements: tuple[int, ...]
    is_list: bool


@dataclass(frozen=True)
class Add:
    """Adds a positive amount to the counter of a key."""

    key: Key
    amount: int


@dataclass(frozen=True)
class Count:
    """Reads the counter of a key."""

    key: Key
    value: int


@dataclass(frozen=True)
class Transfer:
    """Moves an amount between two accounts of a table."""

    source: Key
    target: Key
    amount: int


@dataclass(frozen=True)
class Total:
    """Reads the sum of all accounts of a table."""

    table: str
    value: int


Operation = Append | Insert | Delete | Declare | Read | Add | Count | Transfer | Total
ELEMENTS: Final = (Append, Insert, Delete, Declare)
WRITES: Final = (*ELEMENTS, Add, Transfer)
_KINDS: Final[Mapping[str, type]] = {kind.__name__: kind for kind in (*WRITES, Read, Count, Total)}


@dataclass(frozen=True)
class Transaction:
    """A transaction as its client saw it.

    Attributes:
        number: unique in the history.
        client: the name of the thread or process.
        start: when the client first asked for it, in the history's one clock.
        end: when the client knew the answer; None if it never knew.
        is_serializable: whether it is serializable whatever the levels of its tables are, as a transaction of several
            statements is.
    """

    number: int
    client: str
    operations: tuple[Operation, ...]
    start: int
    end: int | None
    answer: Answer
    is_serializable: bool = False

    @property
    def reads(self) -> tuple[Read, ...]:
        return tuple(each for each in self.operations if isinstance(each, Read))

    @property
    def written(self) -> tuple[Append | Insert | Delete | Declare, ...]:
        """The elements that it wrote."""
        return tuple(each for each in self.operations if isinstance(each, ELEMENTS))

    @cached_property
    def written_tables(self) -> frozenset[str]:
        writes = (each for each in self.operations if isinstance(each, WRITES))
        return frozenset(each.source.table if isinstance(each, Transfer) else each.key.table for each in writes)

    def is_blind_in(self, table: str) -> bool:
        """Whether it only inserts into the table, and reads nothing of it."""
        of_table = [each for each in self.operations if _table(each) == table]
        return bool(of_table) and all(isinstance(each, Insert) for each in of_table)

    def declares_in(self, table: str) -> bool:
        """Whether it changes the metadata of the table."""
        return any(isinstance(each, Declare) and each.key.table == table for each in self.operations)

    def __str__(self) -> str:
        end = "?" if self.end is None else self.end
        listed = ", ".join(map(str, self.operations))
        return f"T{self.number} of {self.client} [{self.start}, {end}] {self.answer.value}: {listed}"


@dataclass(frozen=True)
class History:
    """All transactions of a run, and what the tables promised.

    Attributes:
        levels: the isolation level of each table.
        totals: the sum of the accounts of each table that has accounts.
    """

    transactions: tuple[Transaction, ...]
    levels: Mapping[str, Level]
    totals: Mapping[str, int]

    def level(self, table: str) -> Level:
        return self.levels.get(table, Level.SERIALIZABLE)


def with_reads(transactions: Iterable[Transaction], reads: Mapping[int, tuple[Read, ...]]) -> list[Transaction]:
    """Adds the reads that statements have stored next to the elements which they wrote.

    Args:
        reads: for each element, what its statement has read.
    """
    return [
        replace(
            each,
            operations=(
                *dict.fromkeys(read for e in each.written for read in reads.get(e.element, ())),
                *each.operations,
            ),
        )
        for each in transactions
    ]


def to_json(operations: Iterable[Operation]) -> list[Any]:
    """Operations as JSON, for the journal of a client."""
    return [[type(each).__name__, asdict(each)] for each in operations]


def from_json(values: Iterable[Any]) -> tuple[Operation, ...]:
    return tuple(_KINDS[kind](**{name: _value(value) for name, value in fields.items()}) for kind, fields in values)


def parsed(text: str) -> tuple[Operation, ...]:
    return from_json(json.loads(text))


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return Key(**value)
    return tuple(value) if isinstance(value, list) else value


def _table(operation: Operation) -> str:
    if isinstance(operation, Total):
        return operation.table
    return operation.source.table if isinstance(operation, Transfer) else operation.key.table
