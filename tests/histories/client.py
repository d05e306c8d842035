"""A client: executes its requests one after the other, and writes down what it saw and when."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tests.histories.history import Answer, Count, Operation, Read, Total, Transaction, from_json, to_json
from tests.histories.workload import MAINTENANCE, Observed, Request

Unit = tuple[str, int]
"""The transaction identifier of a write: application id and version."""

MOST_TRIES = 20


class NotApplied(Exception):
    """The statement failed, and promises that nothing was applied."""


class NotKnown(Exception):
    """The statement may have been applied."""


class Door(Protocol):
    """A way to the tables: the same requests as SQL, or by the kernel."""

    def execute(self, request: Request, unit: Unit | None) -> Observed:
        """Executes one statement.

        Raises:
            NotApplied, NotKnown: see there.
        """
        ...


@dataclass
class Journal:
    """The notes of a client: a line for each beginning and each end, which a killed client does not take back.

    Attributes:
        keep: where each line goes.
        now: the one clock of the history.
    """

    keep: Callable[[str], object]
    now: Callable[[], int]

    def begin(self, number: int) -> None:
        self.keep(json.dumps({"begin": number, "at": self.now()}))

    def end(self, number: int, answer: Answer, observed: Observed | None = None) -> None:
        at, seen = self.now(), observed or Observed()
        stored = {element: to_json(reads) for element, reads in seen.stored.items()}
        line = {"end": number, "at": at, "answer": answer.value, "reads": to_json(seen.reads), "stored": stored}
        self.keep(json.dumps(line))


@dataclass(frozen=True)
class Client:
    """A client with its requests.

    Attributes:
        units: whether each write has a transaction identifier, so that it is repeated after a lost answer.
    """

    index: int
    requests: Sequence[Request]
    door: Door
    journal: Journal
    units: bool = True

    def live(self, lines: Iterable[str] = ()) -> None:
        """Executes the requests that have no end in the journal's earlier lines; a unit of work is repeated."""
        entries = Entries.of(lines)
        for number, request in enumerate(self.requests):
            if number in entries.ends:
                continue
            may_be_applied = number in entries.begins and bool(request.writes)
            if may_be_applied and not self.units:
                self.journal.end(number, Answer.UNKNOWN)
                continue
            self._execute(number, request, Answer.UNKNOWN if may_be_applied else Answer.FAILED)

    def _execute(self, number: int, request: Request, otherwise: Answer) -> None:
        """Executes a request until its answer is known.

        Args:
            otherwise: the answer if the last try fails.
        """
        unit = (f"histories/{self.index}/{number}", 1) if request.writes and self.units else None
        self.journal.begin(number)
        for _ in range(MOST_TRIES):
            try:
                observed = self.door.execute(request, unit)
            except NotApplied:
                break
            except NotKnown:
                otherwise = Answer.UNKNOWN
                if unit is None:
                    break
            else:
                self.journal.end(number, Answer.OK, observed)
                return
        self.journal.end(number, otherwise)


@dataclass
class Entries:
    """The lines of a client's journal, by the number of the request.

    If a request was executed twice, its first beginning and its first success count.

    Attributes:
        unended: how many executions of each request have no end, because the client was killed.
    """

    begins: dict[int, int] = field(default_factory=dict)
    ends: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    unended: Counter[int] = field(default_factory=Counter)

    @classmethod
    def of(cls, lines: Iterable[str]) -> Entries:
        found = cls()
        for line in map(json.loads, lines):
            number = line.get("begin", line.get("end"))
            found.unended[number] += 1 if "begin" in line else -1
            if "begin" in line:
                found.begins.setdefault(line["begin"], line["at"])
            elif found.ends.get(line["end"], {}).get("answer") != Answer.OK.value:
                found.ends[line["end"]] = line
        return found


def transactions_of(requests: Sequence[Request], index: int, lines: Iterable[str]) -> list[Transaction]:
    """The transactions of a client, from its journal; requests that neither write nor read rows are left out."""
    entries = Entries.of(lines)
    found = []
    for number, start in entries.begins.items():
        request, end = requests[number], entries.ends.get(number)
        if request.kind in MAINTENANCE:
            continue
        answer = Answer.UNKNOWN if end is None else Answer(end["answer"])
        if answer is Answer.FAILED and entries.unended[number]:
            answer = Answer.UNKNOWN  # a twin of the client may have applied it before it was killed
        reads = () if end is None else from_json(end["reads"])
        if not request.writes and not reads:
            continue
        known = None if end is None or answer is Answer.UNKNOWN else end["at"]
        identity = (index + 1) * 10_000_000 + number
        operations, together = (*reads, *request.writes), bool(request.statements)
        found.append(Transaction(identity, f"client {index}", operations, start, known, answer, together))
    return found


def stored_reads(lines: Iterable[str]) -> dict[int, tuple[Read, ...]]:
    """The reads that statements have stored with their elements, as any client saw them."""
    found: dict[int, tuple[Read, ...]] = {}
    for line in map(json.loads, lines):
        for element, reads in line.get("stored", {}).items():
            found[int(element)] = tuple(each for each in from_json(reads) if isinstance(each, Read))
    return found


def reads_of_rows(
    request: Request, elements: Mapping[Any, list[int]], numbers: Mapping[Any, int]
) -> tuple[Operation, ...]:
    """The answers to a `read`.

    Args:
        elements: of each list and set; a key without rows is empty.
        numbers: the values of counters, by key, and the totals, by table.
    """
    return (
        *(Read(key, tuple(elements.get(key, ())), is_list=True) for key in request.lists),
        *(Read(key, tuple(elements.get(key, ())), is_list=False) for key in request.sets),
        *(Count(key, numbers[key]) for key in request.counters),
        *(Total(table, numbers[table]) for table in request.totals),
    )
