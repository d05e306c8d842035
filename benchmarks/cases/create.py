"""Creates the large table, and a table of many partitions."""

from __future__ import annotations

from benchmarks.cases.table_case import TableCase
from benchmarks.contestants.contestant import Contestant, Need
from benchmarks.data import PARTITIONED, Scale, short


class Create(TableCase):
    """`create table ... as select`."""

    warmups = 1
    repetitions = 3

    def __init__(self, scale: Scale) -> None:
        super().__init__(scale.large_table)
        self.name = f"create {short(scale.large)} rows"

    def prepare(self, contestant: Contestant) -> None:
        contestant.provide(self._start_rows)

    def before(self, contestant: Contestant, repetition: int) -> None:
        contestant.provide(self._start_rows)
        if repetition > 0:
            contestant.remove(self.table(repetition - 1))

    def work(self, contestant: Contestant, repetition: int) -> None:
        contestant.create(self.table(repetition), self._start_rows, self._layout)


class ManyPartitions(Create):
    """A table of 1,000 partitions, from unordered rows."""

    needs = frozenset((Need.PARTITIONED_WRITE,))
    repetitions = 2

    def __init__(self, scale: Scale) -> None:
        TableCase.__init__(self, scale.partitioned_table, PARTITIONED)
        self.name = f"create {short(scale.partitioned_table.high)} rows in partitions"
