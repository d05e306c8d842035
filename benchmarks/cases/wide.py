"""Changes few rows of a table with few rows and very many columns."""

from __future__ import annotations

from benchmarks.cases.table_case import TableCase
from benchmarks.contestants.contestant import Contestant
from benchmarks.data import HUNDREDTH, Scale


class WideMerge(TableCase):
    """`update set *` and `insert *`, each of which assigns every column separately."""

    start = "wide"
    repetitions = 5

    def __init__(self, scale: Scale) -> None:
        super().__init__(scale.wide_table)
        self.name = f"merge 10 rows into 100 of {scale.extra:,} columns"
        self.given = self._source = scale.newest_wide

    def work(self, contestant: Contestant, repetition: int) -> None:
        contestant.merge(self.table(repetition), self._source)


class WideUpdate(TableCase):
    """One column of one row."""

    start = "wide"
    repetitions = 5

    def __init__(self, scale: Scale) -> None:
        super().__init__(scale.wide_table)
        self.name = f"update 1 row of {scale.extra:,} columns"

    def work(self, contestant: Contestant, repetition: int) -> None:
        contestant.update_each(self.table(repetition), HUNDREDTH)
