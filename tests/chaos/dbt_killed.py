"""Runs dbt's command line in a process that kills itself, and the Java process that it started, at a given moment.

dbt_killed REPORT [MOMENT] -- build --vars ...

REPORT gets a line of JSON: the moment that was reached or, at the end of a complete run, how often each step occurred.
The process must be the leader of its own process group.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from dbt.cli.main import cli

from tests import kept_sparks
from tests.chaos.planted import plant
from tests.chaos.steps import Moment, Places, Step

_EVENTS = frozenset(("open", "os.link", "os.rename", "os.remove"))


class Watch:
    """Counts the steps of this process, and sends the signal at its moment."""

    def __init__(self, report: str, moment: Moment | None) -> None:
        self._report = report
        self._moment = moment
        self._local = threading.local()
        self._counters: dict[Step, Iterator[int]] = {step: itertools.count(1) for step in Step}
        self._reached: dict[Step, int] = dict.fromkeys(Step, 0)
        self._entered: float | None = None
        self._began = time.monotonic()
        self._due = threading.Event()
        threading.Thread(target=self._wait, name="chaos", daemon=True).start()

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Handles an audit event."""
        if event not in _EVENTS:
            return
        if not hasattr(self._local, "places"):
            self._local.places = Places()
        step = self._local.places.step(event, arguments)
        if step is not None:
            self.take(step)

    def take(self, step: Step) -> None:
        number = self._reached[step] = next(self._counters[step])
        if step is Step.ENTRY and self._entered is None:
            self._entered = time.monotonic()
        moment = self._moment
        if moment is None or moment.step != step.name or moment.n != number:
            return
        if moment.seconds:
            self._due.set()
        else:
            self._strike(moment)

    def end(self) -> None:
        """Reports the steps of a complete run."""
        self._write({"steps": {step.name: times for step, times in self._reached.items()}, **self._times()})

    def _wait(self) -> None:
        self._due.wait()
        assert self._moment is not None
        time.sleep(self._moment.seconds)
        self._strike(self._moment)

    def _strike(self, moment: Moment) -> None:
        self._write({"struck": moment.step, "table": getattr(self._local, "places", Places()).table, **self._times()})
        if moment.of_spark:
            kept_sparks.kill()
        else:
            os.killpg(0, moment.signal)

    def _times(self) -> dict[str, float | None]:
        now = time.monotonic()
        return {
            "seconds": now - self._began,
            "start_seconds": None if self._entered is None else self._entered - self._began,
        }

    def _write(self, facts: dict[str, Any]) -> None:
        file = os.open(self._report, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.write(file, (json.dumps(facts) + "\n").encode())
        os.close(file)


def main() -> NoReturn:
    """Runs dbt as the `dbt` command does."""
    assert os.getpgrp() == os.getpid(), "it kills its process group: give it one of its own"
    # A process that a shell starts in the background ignores Ctrl-C, and its children would too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    at = sys.argv.index("--")
    own, arguments = sys.argv[1:at], sys.argv[at + 1 :]
    watch = Watch(own[0], Moment.from_json(own[1]) if len(own) > 1 else None)
    plant()
    watch.take(Step.START)
    sys.addaudithook(watch.hear)
    sys.argv = [str(Path(sys.executable).with_name("dbt")), *arguments]
    try:
        cli()
    finally:
        watch.end()
    raise AssertionError("dbt's command line ends the process")


if __name__ == "__main__":
    main()
