"""Finds one row, and reads all rows."""

from __future__ import annotations

from pyspark.sql import DataFrame, Row, SparkSession

from benchmarks.cases.table_case import TableCase, start_of
from benchmarks.contestants.contestant import Contestant
from benchmarks.data import HUNDREDTH, PLAIN, VECTORS, Layout, Scale, short


class _Query(TableCase):
    """A query of one table that never changes; the returned rows are its result."""

    def __init__(self, scale: Scale, layout: Layout = PLAIN) -> None:
        super().__init__(scale.large_table, layout)
        self.start = start_of(layout)
        self._found: dict[str, list[Row]] = {}

    def before(self, contestant: Contestant, repetition: int) -> None:
        if repetition == 0:
            contestant.copy(self.start, self.table(repetition))

    def result(self, contestant: Contestant, repetition: int) -> DataFrame:
        return SparkSession.active().createDataFrame(self._found[contestant.name])

    def table(self, repetition: int) -> str:
        return f"{type(self).__name__.lower()}"


class PointQuery(_Query):
    """`select * ... where id = ...` with another key each time."""

    warmups = 5
    repetitions = 15

    def __init__(self, scale: Scale) -> None:
        super().__init__(scale)
        self.name = f"find 1 of {short(scale.large)} rows"

    def work(self, contestant: Contestant, repetition: int) -> None:
        key = (repetition + 1) * 7919 % self._start_rows.high
        self._found[contestant.name] = contestant.find(self.table(repetition), key)


class FullScan(_Query):
    """Aggregates over all columns of all rows."""

    def __init__(self, scale: Scale, layout: Layout = PLAIN) -> None:
        super().__init__(scale, layout)
        self.name = f"read {short(scale.large)} rows"

    def work(self, contestant: Contestant, repetition: int) -> None:
        self._found[contestant.name] = contestant.totals(self.table(repetition))


class FullScanOfDeletedRows(FullScan):
    """The same, with one row in a hundred deleted by deletion vectors. Bare Spark has files without these rows."""

    def __init__(self, scale: Scale) -> None:
        super().__init__(scale, VECTORS)
        self.start = "large_with_deleted_rows"
        self.name = f"{self.name}, 1 % deleted by vectors"

    def make(self, contestant: Contestant) -> None:
        super().make(contestant)
        contestant.settle(self.start)
        contestant.delete_each(self.start, HUNDREDTH)
