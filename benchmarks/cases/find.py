"""Looks up one row."""

from __future__ import annotations

from pyspark.sql import DataFrame, Row, SparkSession

from benchmarks.cases.table_case import TableCase
from benchmarks.contestants.contestant import Contestant
from benchmarks.data import Scale, short


class PointQuery(TableCase):
    """`select * ... where id = ...`; another key each time."""

    start = "large"
    warmups = 5
    repetitions = 15

    def __init__(self, scale: Scale) -> None:
        super().__init__(scale.large_table)
        self.name = f"find 1 of {short(scale.large)} rows"
        self._found: dict[str, list[Row]] = {}

    def before(self, contestant: Contestant, repetition: int) -> None:
        if repetition == 0:
            contestant.copy(self.start, self.table(repetition))

    def work(self, contestant: Contestant, repetition: int) -> None:
        key = (repetition + 1) * 7919 % self._start_rows.high
        self._found[contestant.name] = contestant.find(self.table(repetition), key)

    def result(self, contestant: Contestant, repetition: int) -> DataFrame:
        return SparkSession.active().createDataFrame(self._found[contestant.name])

    def table(self, repetition: int) -> str:
        return "searched"
