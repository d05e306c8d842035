"""Deletes and updates rows: a range of keys, scattered keys, a partition."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from benchmarks.cases.table_case import TableCase, named, start_of
from benchmarks.contestants.contestant import Contestant, Need
from benchmarks.data import HUNDREDTH, PARTITIONED, PLAIN, Layout, Scale, short

DELETED_CATEGORY = 7


class DeleteRange(TableCase):
    """A range inside one file of the large table."""

    def __init__(self, scale: Scale, layout: Layout = PLAIN) -> None:
        super().__init__(scale.large_table, layout)
        self.start = start_of(layout)
        self._low, self._high = scale.middle
        self.name = named(f"delete {short(self._high - self._low)} of {short(scale.large)} rows", layout)

    def work(self, contestant: Contestant, repetition: int) -> None:
        contestant.delete(self.table(repetition), self._low, self._high)


class DeleteScattered(TableCase):
    """One row in a hundred, in every file."""

    warmups = 1
    repetitions = 3

    def __init__(self, scale: Scale, layout: Layout = PLAIN) -> None:
        super().__init__(scale.large_table, layout)
        self.start = start_of(layout)
        self.name = named(f"delete 1 % of {short(scale.large)} rows", layout)

    def work(self, contestant: Contestant, repetition: int) -> None:
        contestant.delete_each(self.table(repetition), HUNDREDTH)


class UpdateScattered(DeleteScattered):
    """The same rows, updated."""

    def __init__(self, scale: Scale, layout: Layout = PLAIN) -> None:
        super().__init__(scale, layout)
        self.name = named(f"update 1 % of {short(scale.large)} rows", layout)

    def work(self, contestant: Contestant, repetition: int) -> None:
        contestant.update_each(self.table(repetition), HUNDREDTH)


class DeletePartition(TableCase):
    """One of many partitions. Bare Spark has no statement for it, because it has no atomic deletion."""

    start = "partitioned"
    needs = frozenset((Need.PARTITION_DELETE,))

    def __init__(self, scale: Scale) -> None:
        super().__init__(scale.partitioned_table, PARTITIONED)
        self.name = "delete 1 of many partitions"

    def work(self, contestant: Contestant, repetition: int) -> None:
        contestant.delete_partition(self.table(repetition), DELETED_CATEGORY)

    def expected(self) -> DataFrame:
        return self._start_rows.frame(SparkSession.active()).where(f"category <> {DELETED_CATEGORY}")
