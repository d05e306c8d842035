"""TableCase, the base of the cases: a start table, made once, of which each repetition gets a copy."""

from __future__ import annotations

from pyspark.sql import DataFrame

from benchmarks.contestants.contestant import Contestant
from benchmarks.data import Rows


class TableCase:
    """An operation on a fresh copy of a start table. A case implements `work`.

    Attributes:
        start: the start table's name; cases that name the same one share the cost of making it.
        given: the input rows, if any.
    """

    name: str
    start: str
    given: Rows | None = None
    warmups = 2
    repetitions = 7

    def __init__(self, start_rows: Rows) -> None:
        self._start_rows = start_rows

    def prepare(self, contestant: Contestant) -> None:
        if not contestant.has(self.start):
            contestant.provide(self._start_rows)
            contestant.create(self.start, self._start_rows)

    def before(self, contestant: Contestant, repetition: int) -> None:
        if repetition > 0:
            contestant.remove(self.table(repetition - 1))
        contestant.copy(self.start, self.table(repetition))
        if self.given:
            contestant.provide(self.given)

    def result(self, contestant: Contestant, repetition: int) -> DataFrame:
        return contestant.contents(self.table(repetition))

    def finish(self, contestant: Contestant, repetition: int) -> None:
        contestant.remove(self.table(repetition))

    def table(self, repetition: int) -> str:
        """The name of a repetition's table."""
        return f"{type(self).__name__.lower()}_{repetition}"
