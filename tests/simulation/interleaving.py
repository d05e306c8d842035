"""Runs tasks one at a time and switches between them only at operations of a store, in a chosen order.

A task is a thread that waits for its turn before each operation at which the store yields. An order of turns
thus determines the whole run, and all orders of a few small tasks can be tested.
"""

from __future__ import annotations

import gc
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from dbt.adapters.silt.engine.kernel.storage.store import Store
from tests.faulty_store import Fault, FaultyStore

T = TypeVar("T")
Task = Callable[[], Any]
Choose = Callable[[int], int]


class YieldingStore(FaultyStore):
    """A store that lets the scheduler choose the next task before each write or read of a commit."""

    def __init__(self, inner: Store, scheduler: Scheduler, faults: Sequence[Fault] = (), seed: int = 0) -> None:
        super().__init__(inner, faults, seed)
        self.scheduler = scheduler

    def around(self, operation: str, path: str, run: Callable[[], T]) -> T:
        is_commit = path.endswith(".json") and operation in ("put_if_absent", "read")
        if is_commit or operation == "rename_folder":
            self.scheduler.turn()
        return super().around(operation, path, run)


class Scheduler:
    """Gives one task at a time its turn. A task yields by itself; the next task is chosen while it waits."""

    def __init__(self) -> None:
        self._mine = threading.local()
        self._lanes: list[Lane] = []
        self._choose: Choose = _first
        self._begun = False
        self._back = _closed_gate()

    def run(self, tasks: Sequence[Task], choose: Choose) -> list[Any]:
        """Runs the tasks to their end.

        Args:
            choose: gets the number of waiting tasks, and returns the index of the task to run.

        Returns:
            The result of each task, or the exception that ended it.
        """
        with _without_collections():
            return self._run(tasks, choose)

    def _run(self, tasks: Sequence[Task], choose: Choose) -> list[Any]:
        self._choose, self._begun = choose, False
        self._lanes = lanes = [Lane(task) for task in tasks]
        for lane in lanes:
            threading.Thread(target=self._run_lane, args=(lane,), daemon=True).start()
            self._await_turn()
        self._begun = True
        if self._pass_on(None):
            self._await_turn()
        return [lane.result for lane in lanes]

    def turn(self) -> None:
        """Waits until the calling task may continue; does nothing outside a task."""
        lane = getattr(self._mine, "lane", None)
        if lane is None:
            return
        if self._begun:
            self._pass_on(lane)
        else:
            self._back.release()
            lane.gate.acquire()

    def _run_lane(self, lane: Lane) -> None:
        self._mine.lane = lane
        try:
            lane.result = lane.task()
        except BaseException as error:
            lane.result = error
        self._lanes = [other for other in self._lanes if other is not lane]
        if not self._begun or not self._pass_on(None):
            self._back.release()

    def _pass_on(self, own: Lane | None) -> bool:
        """Lets the chosen task continue, waits if it is another task, and returns whether a task was waiting."""
        waiting = self._lanes
        if not waiting:
            return False
        chosen = waiting[self._choose(len(waiting)) if len(waiting) > 1 else 0]
        if chosen is not own:
            chosen.gate.release()
            if own is not None:
                own.gate.acquire()
        return True

    def _await_turn(self) -> None:
        assert self._back.acquire(timeout=600), "a task neither ended nor came to a yield point"


class Lane:
    """A task and its gate, which is open while it has its turn."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.gate = _closed_gate()
        self.result: Any = None


@contextmanager
def _without_collections() -> Iterator[None]:
    """Collects no garbage meanwhile: a log reads again if a collection frees the snapshot that it had handed out."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _closed_gate() -> threading.Lock:
    gate = threading.Lock()
    gate.acquire()
    return gate


def _first(options: int) -> int:
    return 0


def every_order() -> Iterator[Choose]:
    """Yields a chooser for each possible order of turns; the caller runs all tasks again with each chooser."""
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
    """Returns a random chooser."""
    chance = random.Random(seed)
    return lambda options: chance.randrange(options)
