"""Creates the large table."""

from __future__ import annotations

from benchmarks.cases.table_case import TableCase
from benchmarks.contestants.contestant import Contestant
from benchmarks.data import Scale, short


class Create(TableCase):
    """`create table ... as select`."""

    warmups = 1
    repetitions = 5

    def __init__(self, scale: Scale) -> None:
        super().__init__(scale.large_table)
        self.name = f"create {short(scale.large)} rows"

    def prepare(self, contestant: Contestant) -> None:
        contestant.provide(self._start_rows)

    def before(self, contestant: Contestant, repetition: int) -> None:
        if repetition > 0:
            contestant.remove(self.table(repetition - 1))

    def work(self, contestant: Contestant, repetition: int) -> None:
        contestant.create(self.table(repetition), self._start_rows)
