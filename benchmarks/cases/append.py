"""Appends a few rows to one table, many times."""

from __future__ import annotations

from benchmarks.cases.table_case import TableCase
from benchmarks.contestants.contestant import Contestant
from benchmarks.data import Rows, Scale, short


class SmallAppends(TableCase):
    """`insert into`; the table gets a file each time, and checkpoints in between."""

    start = "small"
    warmups = 3
    repetitions = 30

    def __init__(self, scale: Scale) -> None:
        super().__init__(scale.small_table)
        self.name = f"append {short(scale.appended)} rows"
        self._size = scale.appended

    def before(self, contestant: Contestant, repetition: int) -> None:
        if repetition == 0:
            contestant.copy(self.start, self.table(repetition))
        contestant.provide(self._rows(repetition))

    def work(self, contestant: Contestant, repetition: int) -> None:
        contestant.append(self.table(repetition), self._rows(repetition))

    def table(self, repetition: int) -> str:
        return "appended"

    def _rows(self, repetition: int) -> Rows:
        low = self._start_rows.high + repetition * self._size
        return Rows(low, low + self._size)
