"""Traces one statement: the seconds of each phase in Python, in calls to Spark, and in Spark's jobs."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from py4j.java_gateway import GatewayClient
from pyspark.sql.classic.dataframe import DataFrame

from benchmarks.parts.phases import REST, wrapped
from benchmarks.parts.spark_jobs import Interval, SparkJobs, overlap


@dataclass
class Spent:
    """Seconds of a phase without the phases inside it.

    Attributes:
        python: outside of calls to Spark.
        spark: in calls to Spark, while no job ran: analysis, optimization, scheduling, work of committers.
        jobs: while a job ran.
        calls: the number of calls to Spark, without calls that only release an object.
    """

    python: float = 0.0
    spark: float = 0.0
    jobs: float = 0.0
    calls: float = 0

    @property
    def seconds(self) -> float:
        return self.python + self.spark + self.jobs


@dataclass(frozen=True)
class Trace:
    """One statement.

    Attributes:
        phases: the seconds of each phase of the statement.
        jobs: the number of its jobs.
        methods: the calls to Spark, by `phase: method`.
    """

    phases: dict[str, Spent]
    jobs: int
    methods: dict[str, Spent] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        return sum(spent.seconds for spent in self.phases.values())


@dataclass(frozen=True)
class _Call:
    """A call to Spark: its phase, method and times; `method` is empty if the call only releases an object."""

    phase: str
    method: str
    interval: Interval


@dataclass
class _Running:
    """The trace of a statement while its thread runs it."""

    thread: int = field(default_factory=threading.get_ident)
    began: float = field(default_factory=time.time)
    phases: list[str] = field(default_factory=lambda: [REST])
    seconds: dict[str, float] = field(default_factory=dict)
    calls: list[_Call] = field(default_factory=list)
    since: float = field(default_factory=time.time)
    in_call: bool = False

    def enter(self, phase: str) -> None:
        """Starts a phase inside the current phase."""
        self.count()
        self.phases.append(phase)

    def leave(self) -> None:
        """Ends the current phase."""
        self.count()
        self.phases.pop()

    def count(self) -> None:
        """Adds the seconds since the last change to the current phase."""
        now = time.time()
        self.seconds[self.phases[-1]] = self.seconds.get(self.phases[-1], 0.0) + now - self.since
        self.since = now

    def ended(self, jobs: list[Interval]) -> Trace:
        """Returns the trace after the end of the statement, when the times of its jobs are known."""
        spent = {phase: Spent(python=seconds) for phase, seconds in self.seconds.items()}
        methods: dict[str, Spent] = {}
        for call in self.calls:
            in_jobs, seconds = overlap(call.interval, jobs), call.interval.seconds
            spent[call.phase].python -= seconds
            named = methods.setdefault(f"{call.phase}: {call.method}", Spent())
            for each in (spent[call.phase], named):
                each.jobs += in_jobs
                each.spark += seconds - in_jobs
                each.calls += bool(call.method)
        return Trace(spent, len(jobs), methods)


class Tracer:
    """Traces successive statements of one thread, while it is installed."""

    def __init__(self, jobs: SparkJobs) -> None:
        self._jobs = jobs
        self._running: _Running | None = None
        self.traces: list[Trace] = []

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Wraps the phases' functions and the calls to Spark."""
        send, to_arrow = GatewayClient.send_command, DataFrame.toArrow
        GatewayClient.send_command = self._call(send)
        DataFrame.toArrow = self._call(to_arrow)  # its job runs while Python reads from a socket
        try:
            with wrapped(self._phase):
                yield
        finally:
            GatewayClient.send_command, DataFrame.toArrow = send, to_arrow

    @contextmanager
    def statement(self) -> Iterator[None]:
        """Traces a statement that runs inside the context, and keeps the trace."""
        self._jobs.new()
        running = self._running = _Running()
        try:
            yield
        finally:
            running.count()
            self._running = None
        self.traces.append(running.ended(self._jobs.new()))

    def _phase(self, phase: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def traced(*args: Any, **kwargs: Any) -> Any:
            running = self._of_this_thread()
            if running is None:
                return function(*args, **kwargs)
            running.enter(phase)
            try:
                return function(*args, **kwargs)
            finally:
                running.leave()

        return traced

    def _call(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def traced(*args: Any, **kwargs: Any) -> Any:
            running = self._of_this_thread()
            if running is None or running.in_call:
                return function(*args, **kwargs)
            running.in_call, began = True, time.time()
            try:
                return function(*args, **kwargs)
            finally:
                running.in_call = False
                called = Interval(began, time.time())
                running.calls.append(_Call(running.phases[-1], _method(function.__name__, *args[1:2]), called))

        return traced

    def _of_this_thread(self) -> _Running | None:
        running = self._running
        return running if running is not None and running.thread == threading.get_ident() else None


def _method(function: str, command: str = "") -> str:
    """Returns the method that a command of Py4J's protocol calls, such as `c\\no12\\nanalyze\\n...`."""
    kind, *words = command.split("\n")
    if not words:
        return function
    if kind == "m":
        return ""
    return words[1] if kind == "c" and len(words) > 1 else {"i": "new ", "r": "look up "}.get(kind, "") + words[0]
