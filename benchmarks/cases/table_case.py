"""TableCase, the base of the cases: each repetition gets a copy of a start table that is created once."""

from __future__ import annotations

from pyspark.sql import DataFrame

from benchmarks.contestants.contestant import Contestant, Need
from benchmarks.data import PLAIN, Layout, Rows


class TableCase:
    """An operation on a fresh copy of a start table. A case implements `work`.

    Attributes:
        needs: the capabilities that a contestant must have to take part.
        start: the start table's name; cases with the same name share the table.
        given: the input rows, if any.
    """

    name: str
    start: str
    needs = frozenset((Need.ROWS,))
    given: Rows | None = None
    warmups = 2
    repetitions = 7

    def __init__(self, start_rows: Rows, layout: Layout = PLAIN) -> None:
        self._start_rows = start_rows
        self._layout = layout
        if layout.deletion_vectors:
            self.needs |= {Need.DELETION_VECTORS}

    def prepare(self, contestant: Contestant) -> None:
        if not contestant.has(self.start):
            contestant.provide(self._start_rows)
            self.make(contestant)
            contestant.settle(self.start)

    def make(self, contestant: Contestant) -> None:
        """Creates the start table."""
        contestant.create(self.start, self._start_rows, self._layout)

    def before(self, contestant: Contestant, repetition: int) -> None:
        if repetition > 0:
            contestant.remove(self.table(repetition - 1))
        contestant.copy(self.start, self.table(repetition))
        if self.given:
            contestant.provide(self.given)

    def result(self, contestant: Contestant, repetition: int) -> DataFrame:
        return contestant.contents(self.table(repetition))

    def expected(self) -> DataFrame | None:
        """Returns the result as Spark computes it from the input, or None if the baseline's result is sufficient."""
        return None

    def finish(self, contestant: Contestant, repetition: int) -> None:
        contestant.remove(self.table(repetition))

    def table(self, repetition: int) -> str:
        """Returns the name of a repetition's table."""
        return f"{type(self).__name__.lower()}_{repetition}"


def start_of(layout: Layout) -> str:
    """Returns the name of the large start table."""
    return "large_with_vectors" if layout.deletion_vectors else "large"


def named(name: str, layout: Layout) -> str:
    """Returns the name of a case on a table of the layout."""
    return f"{name}, by vectors" if layout.deletion_vectors else name
