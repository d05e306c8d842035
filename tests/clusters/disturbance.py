"""Kills and stops the executors of a cluster while they run a statement."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from tests.clusters.standalone import Cluster


@dataclass(frozen=True)
class Fault:
    """A fault of an executor while a statement runs.

    Attributes:
        after: the number of completed tasks of the statement before the fault.
        seconds: how long the executor is stopped; None to kill it.
    """

    after: int
    seconds: float | None


class Disturbance:
    """Disturbs executors while the block runs; yields the list of the faults that occurred."""

    def __init__(self, spark: SparkSession, cluster: Cluster, faults: Sequence[Fault]) -> None:
        self._tracker = spark.sparkContext.statusTracker()
        self._cluster = cluster
        self._faults = sorted(faults, key=lambda each: each.after)
        self._ended = threading.Event()
        self._seen: dict[int, int] = {}
        self._first = self._completed()
        self._thread = threading.Thread(target=self._run)
        self.hits: list[int] = []

    def __enter__(self) -> list[int]:
        self._thread.start()
        return self.hits

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        for number, fault in enumerate(self._faults):
            while self._completed() - self._first < fault.after:
                if self._ended.wait(0.005):
                    return
            executors = self._cluster.executors()
            if executors:
                self.hits.append(self._hit(executors[number % len(executors)], fault))

    def _hit(self, pid: int, fault: Fault) -> int:
        if fault.seconds is None:
            os.kill(pid, signal.SIGKILL)
            return pid
        os.kill(pid, signal.SIGSTOP)
        try:
            self._ended.wait(fault.seconds)
        finally:
            os.kill(pid, signal.SIGCONT)
        return pid

    def _completed(self) -> int:
        """Returns the number of completed tasks, of all stages that were ever seen running."""
        for stage in self._tracker.getActiveStageIds():
            info = self._tracker.getStageInfo(stage)
            if info is not None:
                self._seen[stage] = max(self._seen.get(stage, 0), info.numCompletedTasks)
        return sum(self._seen.values())
