"""Deletes a range of keys."""

from __future__ import annotations

from benchmarks.cases.table_case import TableCase
from benchmarks.contestants.contestant import Contestant
from benchmarks.data import Scale, short


class DeleteRange(TableCase):
    """A range inside one file of the large table."""

    start = "large"

    def __init__(self, scale: Scale) -> None:
        super().__init__(scale.large_table)
        self._low, self._high = scale.middle
        self.name = f"delete {short(self._high - self._low)} of {short(scale.large)} rows"

    def work(self, contestant: Contestant, repetition: int) -> None:
        contestant.delete(self.table(repetition), self._low, self._high)
