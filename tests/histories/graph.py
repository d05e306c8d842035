"""The graph of a history: which transaction came before which, and why.

The order of the versions of a list is the longest list that was read (Kingsbury and Alvaro, "Elle", 2020); a set has no
order, so only reads order its inserts. The names of the edges are Adya's ("Weak Consistency", 1999).
"""

from __future__ import annotations

import enum
import heapq
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from tests.histories.history import Answer, Append, Count, History, Key, Level, Read, Total, Transaction


class Why(enum.Enum):
    """Why a transaction came before another."""

    WRITE_WRITE = "ww"
    """The other wrote the next version of a list."""
    WRITE_READ = "wr"
    """The other read what it wrote."""
    READ_WRITE = "rw"
    """The other wrote what it did not read yet."""
    REAL_TIME = "rt"
    """It ended before the other began."""


@dataclass(frozen=True)
class Edge:
    """One transaction came before another.

    Attributes:
        promised: for a read-write edge: whether the level of the table promises that reads keep this order too.
    """

    before: int
    after: int
    why: Why
    key: Key | None = None
    promised: bool = True

    def __str__(self) -> str:
        at = "" if self.key is None else f" ({self.key})"
        return f"T{self.before} -{self.why.value}-> T{self.after}{at}"


@dataclass(frozen=True)
class Versions:
    """The elements of all keys, by the transactions that wrote them and the lists that were read.

    Attributes:
        writers: the transaction of each element.
        orders: the longest list that was read of each key.
        seen: the elements of each key that a read has returned.
    """

    writers: dict[int, Transaction]
    orders: dict[Key, tuple[int, ...]]
    seen: dict[Key, set[int]]

    @classmethod
    def of(cls, history: History) -> Versions:
        writers = {each.element: one for one in history.transactions for each in one.written}
        orders: dict[Key, tuple[int, ...]] = {}
        seen: dict[Key, set[int]] = defaultdict(set)
        for read in (read for one in history.transactions for read in one.reads):
            seen[read.key].update(read.elements)
            if read.is_list and len(read.elements) > len(orders.get(read.key, ())):
                orders[read.key] = read.elements
        return cls(writers, orders, seen)

    def is_applied(self, one: Transaction) -> bool:
        """Whether the transaction took effect, as far as clients can know."""
        if one.answer is Answer.OK:
            return True
        return any(each.element in self.seen.get(each.key, ()) for each in one.written)

    @cached_property
    def inserted(self) -> dict[Key, list[int]]:
        """The elements of each set that are known to be inserted."""
        found: dict[Key, list[int]] = defaultdict(list)
        for element, one in self.writers.items():
            for each in one.written:
                if each.element == element and not isinstance(each, Append) and self.is_applied(one):
                    found[each.key].append(element)
        return found


def edges(history: History, versions: Versions) -> list[Edge]:
    """All edges between the transactions that took effect."""
    applied = [each for each in history.transactions if versions.is_applied(each)]
    found = [*_between_versions(versions), *_of_reads(history, versions, applied), *_real_time(applied)]
    return [edge for edge in found if edge.before != edge.after]


def _between_versions(versions: Versions) -> Iterator[Edge]:
    for key, order in versions.orders.items():
        writers = [versions.writers[element].number for element in order if element in versions.writers]
        for before, after in itertools.pairwise(writers):
            yield Edge(before, after, Why.WRITE_WRITE, key)


def _of_reads(history: History, versions: Versions, applied: Iterable[Transaction]) -> Iterator[Edge]:
    places = {key: {element: place for place, element in enumerate(order)} for key, order in versions.orders.items()}
    for reader in applied:
        for read in reader.reads:
            known = [element for element in read.elements if element in versions.writers]
            last = known[-1:] if read.is_list else known
            yield from (Edge(versions.writers[each].number, reader.number, Why.WRITE_READ, read.key) for each in last)
            for element in _next_elements(read, versions, places):
                writer = versions.writers[element]
                promised = _is_promised(history, reader, writer, read.key.table)
                yield Edge(reader.number, writer.number, Why.READ_WRITE, read.key, promised)


def _next_elements(read: Read, versions: Versions, places: dict[Key, dict[int, int]]) -> Iterator[int]:
    """The elements that were written next after a read."""
    if read.is_list:
        order = versions.orders.get(read.key, ())
        place = -1 if not read.elements else places.get(read.key, {}).get(read.elements[-1], len(order))
        candidates: Iterable[int] = order[place + 1 : place + 2]
    else:
        candidates = set(versions.inserted.get(read.key, ())).difference(read.elements)
    yield from (element for element in candidates if element in versions.writers)


def _is_promised(history: History, reader: Transaction, writer: Transaction, table: str) -> bool:
    """Whether the level promises that the reader took effect, as a whole, before the writer.

    A statement that only reads is one moment. A statement that writes a table commits after it has read: the level of
    the table decides whether its reads of that table are still valid then; its reads of other tables need not be. A
    change of the metadata applies to the rows of all writers, so it is serializable at every level.
    """
    if not reader.written_tables or reader.is_serializable or reader.declares_in(table):
        return True
    if table not in reader.written_tables or history.level(table) is Level.SNAPSHOT:
        return False
    return not (history.level(table) is Level.WRITE_SERIALIZABLE and writer.is_blind_in(table))


def _real_time(applied: Iterable[Transaction]) -> Iterator[Edge]:
    """Edges from each transaction to the transactions that began after it had ended, without the implied ones."""
    ended: list[tuple[int, int, int]] = []
    newest: list[tuple[int, int]] = []
    for one in sorted(applied, key=lambda each: each.start):
        while ended and ended[0][0] < one.start:
            end, start, number = heapq.heappop(ended)
            newest = [each for each in newest if each[0] >= start]
            newest.append((end, number))
        yield from (Edge(number, one.number, Why.REAL_TIME) for _, number in newest)
        if one.end is not None and one.answer is Answer.OK:
            heapq.heappush(ended, (one.end, one.start, one.number))


def reads_of(history: History, kind: type[Count] | type[Total]) -> Iterator[tuple[Transaction, Count | Total]]:
    """Reads of counters or totals, each with its transaction."""
    for one in history.transactions:
        yield from ((one, each) for each in one.operations if isinstance(each, kind))  # type: ignore[misc]
