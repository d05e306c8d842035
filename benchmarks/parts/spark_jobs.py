"""The jobs that Spark ran, by its own clock, to the millisecond."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Interval:
    """An interval between two times, in seconds since 1970."""

    start: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.start


class SparkJobs:
    """The jobs since the last call, from the embedded Spark's status store."""

    def __init__(self, spark: SparkSession) -> None:
        self._context: Any = spark.sparkContext._jsc.sc()
        self._last = -1
        self.new()

    def new(self) -> list[Interval]:
        """Returns the jobs since the last call, in the order of their starts.

        Raises:
            RuntimeError: if a job has not ended.
        """
        self._context.listenerBus().waitUntilEmpty()
        jobs = self._context.statusStore().jobsList(None)  # the newest is the first
        found, newest = [], self._last
        for position in range(jobs.size()):
            job = jobs.apply(position)
            if job.jobId() <= self._last:
                break
            newest = max(newest, job.jobId())
            if not job.submissionTime().isDefined() or not job.completionTime().isDefined():
                raise RuntimeError(f"job {job.jobId()} has not ended")
            found.append(
                Interval(job.submissionTime().get().getTime() / 1000, job.completionTime().get().getTime() / 1000)
            )
        self._last = newest
        return sorted(found, key=lambda job: job.start)


def overlap(within: Interval, intervals: list[Interval]) -> float:
    """Returns the seconds of `within` that at least one of the intervals covers; they are ordered by their starts."""
    seconds, reached = 0.0, within.start
    for each in intervals:
        start, end = max(each.start, reached), min(each.end, within.end)
        if end > start:
            seconds += end - start
            reached = end
    return seconds
