"""Runs tasks one at a time, switching only where a store is asked for something, in an order that can be chosen.

A task is a thread that waits for its turn before each operation at which the store yields. So an order of turns fixes
the whole run, and all orders of a few small tasks can be tried.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from dbt.adapters.silt.engine.kernel.memory_store import Fault, FaultyStore
from dbt.adapters.silt.engine.kernel.store import Store

T = TypeVar("T")
Task = Callable[[], Any]
Choose = Callable[[int], int]


class YieldingStore(FaultyStore):
    """A store that lets the scheduler choose who goes on before each write or read of a commit."""

    def __init__(self, inner: Store, scheduler: Scheduler, faults: Sequence[Fault] = (), seed: int = 0) -> None:
        super().__init__(inner, faults, seed)
        self.scheduler = scheduler

    def around(self, operation: str, path: str, run: Callable[[], T]) -> T:
        is_commit = path.endswith(".json") and operation in ("put_if_absent", "read")
        if is_commit or operation == "rename_folder":
            self.scheduler.turn()
        return super().around(operation, path, run)

    def child(self, folder: str) -> YieldingStore:
        child = YieldingStore(self.inner.child(folder), self.scheduler)
        child.faults, child._random = self.faults, self._random
        return child


class Scheduler:
    """Gives one task at a time its turn."""

    def __init__(self) -> None:
        self._mine = threading.local()
        self._parked = threading.Semaphore(0)

    def run(self, tasks: Sequence[Task], choose: Choose) -> list[Any]:
        """Runs the tasks to their ends.

        Args:
            choose: of so many tasks that wait, the number of the one whose turn it is.

        Returns:
            What each returned, or the exception it ended with.
        """
        lanes = [_Lane(task) for task in tasks]
        for lane in lanes:
            lane.thread = threading.Thread(target=self._run_lane, args=(lane,), daemon=True)
            lane.thread.start()
            self._await_park()
        while waiting := [lane for lane in lanes if not lane.done]:
            chosen = waiting[choose(len(waiting)) if len(waiting) > 1 else 0]
            chosen.go.release()
            self._await_park()
        return [lane.result for lane in lanes]

    def turn(self) -> None:
        """Waits until the task that calls may go on; does nothing outside a task."""
        lane = getattr(self._mine, "lane", None)
        if lane is not None:
            self._parked.release()
            lane.go.acquire()

    def _run_lane(self, lane: _Lane) -> None:
        self._mine.lane = lane
        try:
            lane.result = lane.task()
        except Exception as error:
            lane.result = error
        lane.done = True
        self._parked.release()

    def _await_park(self) -> None:
        assert self._parked.acquire(timeout=30), "a task neither ended nor came to a yield point"


class _Lane:
    def __init__(self, task: Task) -> None:
        self.task = task
        self.go = threading.Semaphore(0)
        self.done = False
        self.result: Any = None
        self.thread: threading.Thread | None = None


def every_order() -> Iterator[Choose]:
    """A chooser for each order of turns there is, one after the other: run all tasks anew with each."""
    plan: list[list[int]] = []
    while True:
        taken = iter(range(1 << 30))

        def choose(options: int, taken: Iterator[int] = taken) -> int:
            step = next(taken)
            if step == len(plan):
                plan.append([0, options])
            assert plan[step][1] == options, "the tasks do not do the same each time"
            return plan[step][0]

        yield choose
        while plan and plan[-1][0] == plan[-1][1] - 1:
            plan.pop()
        if not plan:
            return
        plan[-1][0] += 1


def random_order(seed: int) -> Choose:
    """A chooser by chance."""
    chance = random.Random(seed)
    return lambda options: chance.randrange(options)
