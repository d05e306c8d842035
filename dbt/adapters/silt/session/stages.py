"""Reports the progress of a session's statements: polls an embedded Spark, or hears it from Spark Connect.

Spark's status store exists without the web interface. The progress is read as JSON, with two calls for all sessions of
the process: separate calls for each number would take ten times as long.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine import spark_seams
from dbt.adapters.silt.status_lines.line import Stages

_SECONDS_KNOWN = 0.3
"""The seconds for which an answer is reused, so that lines that are drawn together share a call."""


def stages_of(session: SparkSession) -> Callable[[], Stages]:
    """Returns a function that reports the progress of a session's statement; registers with a server at once."""
    is_embedded = isinstance(session, SparkSession)  # a session of Spark Connect is of another class
    return _embedded_stages_of(session) if is_embedded else _stages_over_connect(session)


class _StageInfo(Protocol):
    """The attributes of a stage's progress that this module uses, of the objects that PySpark's handlers receive."""

    num_tasks: int
    num_completed_tasks: int
    num_bytes_read: int


class ProgressHandler:
    """The last progress of a server's operations; a handler for `SparkSession.registerProgressHandler`."""

    def __init__(self) -> None:
        self._operations: dict[str | None, Stages] = {}

    def __call__(
        self,
        stages: Iterable[_StageInfo] | None,
        inflight_tasks: int,  # noqa: ARG002 -- PySpark passes it by name
        operation_id: str | None,
        done: bool,
    ) -> None:
        """Records the stages of a statement's operation; an OPTIMIZE has several operations at once."""
        if done:
            self._operations.pop(operation_id, None)
            return
        known = list(stages or ())
        self._operations[operation_id] = Stages(
            tasks_done=sum(each.num_completed_tasks for each in known),
            tasks=sum(each.num_tasks for each in known),
            size=sum(each.num_bytes_read for each in known),
        )

    def stages(self) -> Stages:
        """Returns the progress of the running operations."""
        running = list(self._operations.values())
        return Stages(
            tasks_done=sum(each.tasks_done for each in running),
            tasks=sum(each.tasks for each in running),
            size=sum(each.size for each in running),
        )


def _stages_over_connect(session: Any) -> Callable[[], Stages]:
    """Returns a function that reports the progress of a Connect session's statement."""
    handler = ProgressHandler()
    session.registerProgressHandler(handler)
    return handler.stages


_logger = logging.getLogger(__name__)


class EmbeddedSpark:
    """The running jobs of this process's Spark, by the tags of their sessions. Thread-safe."""

    def __init__(self, context: SparkContext, clock: Callable[[], float] = time.monotonic) -> None:
        self.context = context
        self._clock = clock
        self._lock = threading.Lock()
        self._answered: float | None = None
        self._stages: Mapping[str, Stages] = {}
        self._is_asked = True

    def of(self, session: SparkSession) -> Callable[[], Stages]:
        """Returns a function that returns the progress of a session's jobs, empty if Spark cannot report it."""
        try:
            tag = str(spark_seams.java_session(session).sessionJobTag())
        except Py4JError as error:
            _logger.debug("the progress of the session's jobs is not shown: %s", error)
            return Stages
        return lambda: self._now().get(tag, Stages())

    def _now(self) -> Mapping[str, Stages]:
        with self._lock:
            now = self._clock()
            if self._is_asked and (self._answered is None or now - self._answered > _SECONDS_KNOWN):
                self._stages = self._asked()
                self._answered = self._clock()
            return self._stages

    def _asked(self) -> Mapping[str, Stages]:
        try:
            return by_tag(*self._answer())
        except (Py4JError, OSError, TypeError, LookupError, ValueError) as error:  # not a public interface of Spark
            _logger.debug("the progress of Spark's jobs is no longer shown: %s", error)
            self._is_asked = False
            return {}

    def _answer(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Returns the running jobs and the active stages, as in Spark's REST interface."""
        java = spark_seams.java(self.context)
        store = spark_seams.scala_context(self.context).statusStore()
        running = java.java.util.ArrayList()
        running.add(java.org.apache.spark.JobExecutionStatus.RUNNING)
        mapper = java.org.apache.spark.status.api.v1.JacksonMessageWriter().mapper()
        jobs = mapper.writeValueAsString(store.jobsList(running))
        return json.loads(jobs), json.loads(mapper.writeValueAsString(store.activeStages()))


def by_tag(jobs: list[dict[str, Any]], stages: list[dict[str, Any]]) -> dict[str, Stages]:
    """Returns the progress of the jobs of each tag."""
    active = {stage["stageId"]: stage for stage in stages}
    found: dict[str, Stages] = {}
    for job in jobs:
        own = [active[number] for number in job["stageIds"] if number in active]
        for tag in job["jobTags"]:
            before = found.get(tag, Stages())
            found[tag] = Stages(
                before.tasks_done + job["numCompletedTasks"],
                before.tasks + job["numTasks"] - job["numSkippedTasks"],
                before.rows + sum(map(_rows, own)),
                before.size + sum(stage["inputBytes"] for stage in own),
            )
    return found


def _rows(stage: Mapping[str, int]) -> int:
    read = stage["inputRecords"] + stage["shuffleReadRecords"]
    return read or stage["outputRecords"] or stage["shuffleWriteRecords"]


_lock = threading.Lock()
_asked: EmbeddedSpark | None = None


def _embedded_stages_of(session: SparkSession) -> Callable[[], Stages]:
    """Returns a function that reports the progress of a session of this process's Spark."""
    global _asked
    with _lock:
        if _asked is None or _asked.context is not session.sparkContext:
            _asked = EmbeddedSpark(session.sparkContext)
        return _asked.of(session)
