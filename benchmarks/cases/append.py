"""Appends a few rows to one table many times, in one thread and in several threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import chain

from benchmarks.cases.table_case import TableCase
from benchmarks.contestants.contestant import Contestant
from benchmarks.data import Rows, Scale, short

THREADS = 4


class SmallAppends(TableCase):
    """`insert into`; the table gets a file each time, and checkpoints in between."""

    start = "small"
    warmups = 3
    repetitions = 30

    def __init__(self, scale: Scale) -> None:
        super().__init__(scale.small_table)
        self.name = f"append {short(scale.appended)} rows"
        self._size = scale.appended

    def before(self, contestant: Contestant, repetition: int) -> None:
        if repetition == 0:
            contestant.copy(self.start, self.table(repetition))
        contestant.provide(self._rows(repetition))

    def work(self, contestant: Contestant, repetition: int) -> None:
        contestant.append(self.table(repetition), self._rows(repetition))

    def table(self, repetition: int) -> str:
        return "appended"

    def _rows(self, repetition: int) -> Rows:
        low = self._start_rows.high + repetition * self._size
        return Rows(low, low + self._size)


class ThreadedAppends(TableCase):
    """The same in threads that append to one table, each as fast as possible."""

    start = "small"
    warmups = 1
    repetitions = 3

    def __init__(self, scale: Scale) -> None:
        super().__init__(scale.small_table)
        self.name = f"{THREADS} threads append {scale.appends} times"
        size, of_thread = scale.appended, scale.appends * scale.appended
        starts = [scale.small_table.high + thread * of_thread for thread in range(THREADS)]
        self._rows = [[Rows(low, low + size) for low in range(start, start + of_thread, size)] for start in starts]
        self._workers: list[Contestant] = []

    def before(self, contestant: Contestant, repetition: int) -> None:
        super().before(contestant, repetition)
        contestant.provide(*chain.from_iterable(self._rows))
        self._workers = [contestant.for_thread() for _ in range(THREADS)]

    def work(self, contestant: Contestant, repetition: int) -> None:
        def append(worker: Contestant, inputs: list[Rows]) -> None:
            for rows in inputs:
                worker.append(self.table(repetition), rows)

        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(append, self._workers, self._rows))
