"""Merges into a small table and into a large one, and merges that only insert."""

from __future__ import annotations

from benchmarks.cases.table_case import TableCase
from benchmarks.contestants.contestant import Contestant
from benchmarks.data import Rows, Scale, short


class SmallMerge(TableCase):
    """As many rows as the table has, half of them new: like a small model."""

    start = "small"
    warmups = 5
    repetitions = 15

    def __init__(self, scale: Scale) -> None:
        super().__init__(scale.small_table)
        self.name = f"merge {short(scale.small)} rows into {short(scale.small)}"
        self.given = self._source = Rows(scale.small // 2, scale.small // 2 + scale.small, revision=1)

    def work(self, contestant: Contestant, repetition: int) -> None:
        contestant.merge(self.table(repetition), self._source)


class LargeMerge(TableCase):
    """Clustered keys, half of them new, into the large table."""

    start = "large"

    def __init__(self, scale: Scale) -> None:
        super().__init__(scale.large_table)
        self.name = f"merge {short(scale.changed)} rows into {short(scale.large)}"
        self.given = self._source = scale.newest

    def work(self, contestant: Contestant, repetition: int) -> None:
        contestant.merge(self.table(repetition), self._source)


class ScatteredMerge(TableCase):
    """The same with keys that are in every file of the large table."""

    start = "large"

    def __init__(self, scale: Scale) -> None:
        super().__init__(scale.large_table)
        self.name = f"merge {short(scale.changed)} scattered rows into {short(scale.large)}"
        self.given = self._source = scale.scattered

    def work(self, contestant: Contestant, repetition: int) -> None:
        contestant.merge(self.table(repetition), self._source)


class InsertOnlyMerge(LargeMerge):
    """The same without the update."""

    def __init__(self, scale: Scale) -> None:
        super().__init__(scale)
        self.name = f"insert-only merge {short(scale.changed)} rows into {short(scale.large)}"

    def work(self, contestant: Contestant, repetition: int) -> None:
        contestant.merge(self.table(repetition), self._source, insert_only=True)
