"""Finds the anomalies of a history that the isolation levels of its tables exclude.

Every level excludes each anomaly that is named here and in `cycles.name_of`, except G2, which is a cycle with several
read-write edges: it is excluded if the levels promise all of its edges (`graph.Edge.promised`).

The checker knows only what clients saw. It accepts a history if the transactions can have taken effect in an order that
explains every answer, and that real time allows:

- Serializable: a statement takes effect at one moment, as far as the table that it writes is concerned.
- WriteSerializable: the same, but it may overlook rows that a blind append inserted while it ran.
- SnapshotIsolation: it reads at one moment and writes at a later moment; between them nothing that it writes changes.

Reads of other tables than the written table are of one moment, before the commit. A statement that only reads is one
moment for all of its tables. A transaction of several statements takes effect at one moment in all of its tables, at
every level.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tests.histories import cycles
from tests.histories.graph import Edge, Versions, Why, edges, reads_of
from tests.histories.history import Add, Answer, Append, Count, History, Key, Total, Transaction


@dataclass(frozen=True)
class Anomaly:
    """An anomaly, with the evidence."""

    name: str
    evidence: str

    def __str__(self) -> str:
        return f"{self.name}: {self.evidence}"


def check(history: History) -> list[Anomaly]:
    """All anomalies that the levels of the tables exclude; at most one cycle for each component of the graph."""
    versions = Versions.of(history)
    return [
        *_of_elements(history, versions),
        *_lost(history, versions),
        *_of_counters(history),
        *_of_totals(history),
        *_of_cycles(history, versions),
    ]


def names(anomalies: Iterable[Anomaly]) -> set[str]:
    return {each.name for each in anomalies}


def _of_elements(history: History, versions: Versions) -> Iterator[Anomaly]:
    """Elements that a read must not contain, or must contain, whatever the order of transactions is."""
    for one, read in ((each, read) for each in history.transactions for read in each.reads):
        for element, times in Counter(read.elements).items():
            if times > 1:
                yield Anomaly("statement applied twice", f"{element} is {times} times in {read} of {one}")
            writer = versions.writers.get(element)
            if writer is None or all(each.key != read.key for each in writer.written):
                yield Anomaly("dirty read", f"no transaction wrote {element} to {read.key}, which {one} read")
            elif writer.answer is Answer.FAILED:
                yield Anomaly("G1a", f"{one} read {element} of {writer}")
            else:
                yield from _of_part(one, read.key, read.elements, writer)
        if read.is_list and not _is_prefix(read.elements, versions.orders.get(read.key, ())):
            order = versions.orders[read.key]
            yield Anomaly("lost update", f"{one} read {read}, and another transaction read {order}")


def _of_part(one: Transaction, key: Key, elements: tuple[int, ...], writer: Transaction) -> Iterator[Anomaly]:
    missing = [each.element for each in writer.written if each.key == key and each.element not in elements]
    if missing and writer is not one:
        yield Anomaly("G1b", f"{one} read a part of what {writer} wrote: {missing} is missing")


def _is_prefix(elements: tuple[int, ...], order: tuple[int, ...]) -> bool:
    return order[: len(elements)] == elements


def _lost(history: History, versions: Versions) -> Iterator[Anomaly]:
    """Elements that are missing in the last read of their key."""
    last: dict[Key, tuple[int, tuple[int, ...]]] = {}
    for one in history.transactions:
        for read in one.reads:
            if one.start > last.get(read.key, (-1, ()))[0] and not one.written_tables:
                last[read.key] = (one.start, read.elements)
    for one in history.transactions:
        for each in one.written:
            start, elements = last.get(each.key, (-1, ()))
            if each.element in elements or one.end is None or one.end >= start:
                continue
            seen = each.element in versions.seen[each.key]
            if one.answer is Answer.OK:
                yield _lost_element(history, one, each.key, isinstance(each, Append))
            elif one.answer is Answer.UNKNOWN and seen:
                yield Anomaly("dirty read", f"{each.element} of {one} was read, and is missing in the end")


def _lost_element(history: History, one: Transaction, key: Key, is_list: bool) -> Anomaly:
    beside = next((each for each in history.transactions if is_list and _overlap(one, each, key)), None)
    if beside is None:
        return Anomaly("unit of work lost", f"{key} does not contain what {one} wrote")
    return Anomaly("lost update", f"{key} does not contain what {one} wrote at the same time as {beside}")


def _overlap(one: Transaction, other: Transaction, key: Key) -> bool:
    is_apart = other is one or (other.end is not None and other.end < one.start) or other.start > (one.end or 0)
    return not is_apart and any(each.key == key for each in other.written)


def _of_counters(history: History) -> Iterator[Anomaly]:
    """Compares each value of a counter with the additions that had ended, and with those that had begun."""
    ended: dict[Key, list[tuple[int, int]]] = defaultdict(list)
    begun: dict[Key, list[tuple[int, int]]] = defaultdict(list)
    for one in history.transactions:
        for each in one.operations:
            if isinstance(each, Add) and one.answer is not Answer.FAILED:
                begun[each.key].append((one.start, each.amount))
                if one.answer is Answer.OK and one.end is not None:
                    ended[each.key].append((one.end, each.amount))
    sums = {key: (_Sums(ended[key]), _Sums(begun[key])) for key in begun}
    for one, count in reads_of(history, Count):
        assert isinstance(count, Count) and one.end is not None
        least, most = (0, 0)
        if count.key in sums:
            least, most = sums[count.key][0].before(one.start), sums[count.key][1].before(one.end)
        if count.value > most:
            yield Anomaly(
                "statement applied twice", f"{one} read more than {most}, the sum of all additions until then"
            )
        if count.value < least:
            yield Anomaly("lost update", f"{one} read less than {least}, the sum of the additions that had ended")


class _Sums:
    """Sums of amounts by time."""

    def __init__(self, amounts: list[tuple[int, int]]) -> None:
        self._times: list[int] = []
        self._sums = [0]
        for time, amount in sorted(amounts):
            self._times.append(time)
            self._sums.append(self._sums[-1] + amount)

    def before(self, time: int) -> int:
        return self._sums[bisect_left(self._times, time)]


def _of_totals(history: History) -> Iterator[Anomaly]:
    for one, total in reads_of(history, Total):
        assert isinstance(total, Total)
        if total.value != history.totals.get(total.table, total.value):
            expected = history.totals[total.table]
            yield Anomaly("split transfer", f"{one} read a total of {total.value} instead of {expected}")


def _of_cycles(history: History, versions: Versions) -> Iterator[Anomaly]:
    found = edges(history, versions)
    transactions = {one.number: one for one in history.transactions}
    for component in cycles.components(cycles.graph_of(found)):
        inner = [edge for edge in found if edge.before in component and edge.after in component]
        cycle = _excluded_cycle(inner, {number: transactions[number] for number in component})
        if cycle:
            told = "; ".join(str(transactions[edge.before]) for edge in cycle)
            yield Anomaly(cycles.name_of(cycle), f"{', '.join(map(str, cycle))}; {told}")


def _excluded_cycle(inner: list[Edge], transactions: Mapping[int, Transaction]) -> list[Edge]:
    """The first cycle that is excluded, the gravest first; empty if all cycles are permitted."""
    without_time = [edge for edge in inner if edge.why is not Why.REAL_TIME]
    for allowed in ({Why.WRITE_WRITE}, {Why.WRITE_WRITE, Why.WRITE_READ}):
        if cycle := _any_cycle([edge for edge in without_time if edge.why in allowed]):
            return cycle
    for some in (without_time, inner):
        if cycle := _single(some, transactions) or _any_cycle([edge for edge in some if edge.promised]):
            return cycle
    return []


def _any_cycle(some: list[Edge]) -> list[Edge]:
    graph = cycles.graph_of(some)
    return next((cycles.shortest_cycle(graph, component) for component in cycles.components(graph)), [])


def _single(some: list[Edge], transactions: Mapping[int, Transaction]) -> list[Edge]:
    """A cycle with exactly one read-write edge: such a cycle is excluded even if the edge is not promised."""
    forward = cycles.graph_of(edge for edge in some if edge.why is not Why.READ_WRITE)
    for edge in some:
        if edge.why is Why.READ_WRITE:
            within = _Between(transactions, transactions[edge.after], transactions[edge.before])
            if path := cycles.path_between(forward, edge.after, edge.before, within):
                return [edge, *path]
    return []


@dataclass(frozen=True)
class _Between:
    """The transactions that can be between two others: a cycle with any other also contradicts real time."""

    transactions: Mapping[int, Transaction]
    first: Transaction
    last: Transaction

    def __contains__(self, number: object) -> bool:
        one = self.transactions[number]  # type: ignore[index]
        has_begun = self.last.end is None or one.start <= self.last.end
        return has_begun and (one.end is None or one.end >= self.first.start)
