"""Chooses the progress source of a session, and reads the progress messages of Spark Connect (every two seconds)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from pyspark.sql import SparkSession

from dbt.adapters.silt.session.stages import embedded
from dbt.adapters.silt.status_lines.line import Stages


def stages_of(session: SparkSession) -> Callable[[], Stages]:
    """Returns a function that reports the progress of a session's statement; registers with a server at once."""
    is_embedded = isinstance(session, SparkSession)  # a session of Spark Connect is of another class
    return embedded.stages_of(session) if is_embedded else _stages_over_connect(session)


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
