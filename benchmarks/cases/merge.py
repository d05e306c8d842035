"""Merges into a small and a large table, merges that only insert, and replaces rows by key."""

from __future__ import annotations

from benchmarks.cases.table_case import TableCase, named, start_of
from benchmarks.contestants.contestant import Contestant
from benchmarks.data import PLAIN, Layout, Rows, Scale, short


class SmallMerge(TableCase):
    """As many rows as the table has, half of them new, like a small model."""

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

    repetitions = 5

    def __init__(self, scale: Scale, layout: Layout = PLAIN) -> None:
        super().__init__(scale.large_table, layout)
        self.start = start_of(layout)
        self.name = named(f"merge {short(scale.changed)} rows into {short(scale.large)}", layout)
        self.given = self._source = scale.newest

    def work(self, contestant: Contestant, repetition: int) -> None:
        contestant.merge(self.table(repetition), self._source)


class ScatteredMerge(LargeMerge):
    """The same with keys that are in every file of the large table."""

    warmups = 1
    repetitions = 3

    def __init__(self, scale: Scale, layout: Layout = PLAIN) -> None:
        super().__init__(scale, layout)
        self.name = named(f"merge {short(scale.changed)} scattered rows into {short(scale.large)}", layout)
        self.given = self._source = scale.scattered


class InsertOnlyMerge(LargeMerge):
    """Clustered keys, without the update."""

    def __init__(self, scale: Scale) -> None:
        super().__init__(scale)
        self.name = f"insert-only merge {short(scale.changed)} rows into {short(scale.large)}"

    def work(self, contestant: Contestant, repetition: int) -> None:
        contestant.merge(self.table(repetition), self._source, insert_only=True)


class ReplaceByKey(LargeMerge):
    """Clustered keys: rows with these keys are deleted, and the new rows are inserted."""

    def __init__(self, scale: Scale) -> None:
        super().__init__(scale)
        self.name = f"replace {short(scale.changed)} rows of {short(scale.large)} by key"

    def work(self, contestant: Contestant, repetition: int) -> None:
        contestant.replace(self.table(repetition), self._source)
