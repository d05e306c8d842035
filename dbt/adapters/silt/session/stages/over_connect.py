"""Hears from a Spark Connect server how far the stages of a session's statement are; it says so every two seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from dbt.adapters.silt.status_lines.line import Stages


class StageInfo(Protocol):
    """What PySpark's handlers get of a stage."""

    num_tasks: int
    num_completed_tasks: int
    num_bytes_read: int


class Heard:
    """What a server said last; a handler as `SparkSession.registerProgressHandler` takes it."""

    def __init__(self) -> None:
        self._operations: dict[str | None, Stages] = {}

    def __call__(
        self,
        stages: Iterable[StageInfo] | None,
        inflight_tasks: int,  # noqa: ARG002 -- PySpark gives it by name
        operation_id: str | None,
        done: bool,
    ) -> None:
        """Takes the stages of one operation of a statement; an OPTIMIZE has several at once."""
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
        """How far the operations are that run."""
        running = list(self._operations.values())
        return Stages(
            tasks_done=sum(each.tasks_done for each in running),
            tasks=sum(each.tasks for each in running),
            size=sum(each.size for each in running),
        )


def stages_of(session: Any) -> Callable[[], Stages]:
    """How far the statement of a session of a server is."""
    heard = Heard()
    session.registerProgressHandler(heard)
    return heard.stages
