"""Compacts small files, and deletes unused files of a table."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from benchmarks.cases.table_case import TableCase
from benchmarks.contestants.contestant import Contestant, Need
from benchmarks.data import Scale, short


class Optimize(TableCase):
    """Rewrites many small files as few files."""

    start = "fragments"
    needs = frozenset((Need.MAINTENANCE,))
    warmups = 1
    repetitions = 3

    def __init__(self, scale: Scale) -> None:
        super().__init__(scale.fragmented_table)
        self.name = f"compact {short(scale.fragments)} files"

    def make(self, contestant: Contestant) -> None:
        contestant.create_in_parts(self.start, self._start_rows)
        _check_files(contestant, self.start, self._start_rows.parts)

    def work(self, contestant: Contestant, repetition: int) -> None:
        contestant.optimize(self.table(repetition))

    def expected(self) -> DataFrame:
        return self._start_rows.frame(SparkSession.active())


class Vacuum(Optimize):
    """Deletes the small files after they were compacted."""

    start = "compacted"

    def __init__(self, scale: Scale) -> None:
        super().__init__(scale)
        self.name = f"vacuum {short(scale.fragments)} files"

    def make(self, contestant: Contestant) -> None:
        super().make(contestant)
        contestant.optimize(self.start)

    def work(self, contestant: Contestant, repetition: int) -> None:
        contestant.vacuum(self.table(repetition))

    def result(self, contestant: Contestant, repetition: int) -> DataFrame:
        table = self.table(repetition)
        _check_files(contestant, table, contestant.num_files(self.start) - self._start_rows.parts)
        return super().result(contestant, repetition)


def _check_files(contestant: Contestant, table: str, expected: int) -> None:
    found = contestant.num_files(table)
    if found != expected:
        raise RuntimeError(f"{contestant.name}: {table} has {found} data files in its folder, and not {expected}")
