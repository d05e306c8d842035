"""The steps of a run whose warehouse is in an object store, recognised by its requests at a proxy.

The log's client is native code and Spark's is Java, so Python has no audit events of their requests.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from queue import Queue
from typing import Any, Final

from tests.chaos.steps import HOOKED_TABLES, Moment, Step
from tests.cloud.proxy import Answer, Dropped, Listener, Passing

_WRITES: Final = ("PUT", "POST")
_COMMIT: Final = re.compile(r"/(?P<table>[^/]+)/[^/]+/_delta_log/\d{20}\.json")
_CHECKPOINT: Final = re.compile(r"/_delta_log/\d{20}\.checkpoint\..*parquet")
_TO_DIE: Final = 0.05


@dataclass(frozen=True)
class Around:
    """The steps around a request.

    Attributes:
        before: the proxy has the request, and the server does not.
        answered: the server has answered, and dbt has no answer yet.
        after: dbt has the answer.
        table: the table of the commit.
    """

    before: tuple[Step, ...]
    answered: Step | None = None
    after: Step | None = None
    table: str = ""

    @classmethod
    def of(cls, passing: Passing) -> Around | None:
        """Returns the steps around a request, or None if the request changes nothing."""
        path = passing.path
        if passing.method == "DELETE" or (passing.method == "POST" and passing.query.startswith("delete")):
            return cls((Step.DELETE,), Step.DELETED)
        if passing.method not in _WRITES:
            return None
        if found := _COMMIT.search(path):
            after = Step.HOOK if found["table"] in HOOKED_TABLES else Step.JOURNAL
            return cls((Step.COMMIT, Step.LATE), Step.LINKED, after, found["table"])
        if _CHECKPOINT.search(path):
            return cls((Step.CHECKPOINT,), Step.CHECKPOINTED)
        if path.endswith("/_delta_log/_last_checkpoint"):
            return cls((Step.HINT,))
        if path.endswith("/_catalog.json"):
            return cls((Step.NAMES, Step.LATE_NAMES), Step.NAMED)
        if "/_definitions/" in path:
            return cls((Step.DEFINITION,), Step.DEFINED)
        return cls((Step.UPLOAD,), Step.UPLOADED) if path.endswith(".parquet") else cls((Step.OTHER,))


@dataclass
class Life:
    """The requests of one process, and the moment of its signal."""

    moment: Moment | None
    began: float = field(default_factory=time.monotonic)
    counters: dict[Step, Iterator[int]] = field(default_factory=lambda: {s: itertools.count(1) for s in Step})
    reached: dict[str, int] = field(default_factory=dict)
    struck: dict[str, Any] = field(default_factory=dict)
    group: Queue[int] = field(default_factory=lambda: Queue(1))
    ended: threading.Event = field(default_factory=threading.Event)

    def take(self, step: Step) -> bool:
        """Counts a step, and returns whether it is the moment."""
        number = self.reached[step.name] = next(self.counters[step])
        return self.moment is not None and (self.moment.step, self.moment.n) == (step.name, number)

    def strike(self, table: str) -> None:
        assert self.moment is not None
        if self.ended.is_set():
            return
        group = self.group.get()
        self.struck = {"struck": self.moment.step, "table": table, "seconds": time.monotonic() - self.began}
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, self.moment.signal)
        time.sleep(_TO_DIE)  # connections that close from now on belong to a dead process


class RequestSteps(Listener):
    """Counts the steps of one process at a time, and kills it at its moment.

    At a step before a request, the killed process's request is dropped; at a step after it, the server has executed it.
    At a late step, the server executes it after the process has been dead for the moment's seconds.
    """

    def __init__(self) -> None:
        self._life = Life(None)
        self._life.ended.set()

    def of_process(
        self, moment: Moment | None, run: Callable[[Callable[[int], None]], int]
    ) -> tuple[int, dict[str, Any]]:
        """Runs a process and returns its exit code and its steps, with the step of its signal.

        Args:
            run: runs the process to its end, and calls its argument with the process group after the start.
        """
        life = self._life = Life(moment)
        try:
            code = run(life.group.put)
        finally:
            life.ended.set()
        return code, {"steps": dict(life.reached), **life.struck}

    def asked(self, passing: Passing) -> Answer | None:
        around, life = Around.of(passing), self._life
        passing.note = (around, life)
        if around is not None and not life.ended.is_set():
            for step in around.before:
                if life.take(step):
                    self._come(life, step, around, passing)
        return None

    def answered(self, passing: Passing, status: int) -> None:
        self._has_come(passing, status, "answered")

    def passed_on(self, passing: Passing, status: int) -> None:
        self._has_come(passing, status, "after")

    def _has_come(self, passing: Passing, status: int, when: str) -> None:
        around, life = passing.note  # type: ignore[misc]
        if around is None or life.ended.is_set() or status >= 300:  # type: ignore[has-type]
            return
        step = getattr(around, when)  # type: ignore[has-type]
        if step is not None and life.take(step):  # type: ignore[has-type]
            self._come(life, step, around, passing)  # type: ignore[has-type]

    def _come(self, life: Life, step: Step, around: Around, passing: Passing) -> None:
        assert life.moment is not None
        if step.is_late:
            passing.keep()
            life.strike(around.table)
            time.sleep(life.moment.seconds)
        elif life.moment.seconds:
            threading.Timer(life.moment.seconds, life.strike, (around.table,)).start()
        else:
            life.strike(around.table)
            if life.moment.kills:
                raise Dropped
