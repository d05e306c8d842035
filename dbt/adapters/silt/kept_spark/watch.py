"""Decides when a kept Spark ends: the rule of its keeper, one step at a time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Protocol

from dbt.adapters.silt.kept_spark import private_files, uses
from dbt.adapters.silt.kept_spark.locks import Lock
from dbt.adapters.silt.kept_spark.record import Record, read_json

RECORD = "spark.json"
ALIVE = "alive.lock"
STOP = "stop"
IDLE = "idle"
ENDED = "ended.json"
LOG = "spark.log"


class Reason(str, Enum):
    """Why a kept Spark ended."""

    AGE = "nobody used it any more"
    ASKED = "`silt session stop` asked it to"
    FORCED = "`silt session stop --force` ended it"
    UNCLEAN = "what its commands left could not be cleaned up"
    SIGNALLED = "a signal ended the process that looks after it"
    LOST = "its folder was deleted or replaced"
    DIED = "its Java process ended"


class Spark(Protocol):
    """The Spark that is looked after."""

    def is_alive(self) -> bool:
        """Whether its process runs."""
        ...

    def close_sessions(self, user: str) -> None:
        """Ends what a client's sessions run, and everything that they hold."""
        ...

    def tidy(self) -> bool:
        """Forgets what sessions share and may have left; nobody has one. Whether nothing is left."""
        ...


@dataclass
class Watch:
    """Looks after one Spark.

    Args:
        folder: where its record and its users' locks are.
        record: what its record has to be: another one means that this Spark cannot be found any more.
        now: seconds of a clock that is never set, and does not run while the machine sleeps.
    """

    folder: Path
    record: Record
    spark: Spark
    keep_alive: float
    now: Callable[[], float] = time.monotonic
    _idle_since: float | None = None
    _is_clean: bool = True
    _newest: float = field(default=float("-inf"))
    gate: Lock | None = None
    """Held from the moment that it is decided that Spark ends, to the end of this process."""

    def step(self) -> Reason | None:
        """Closes the sessions of commands that ended; why this Spark ends now, or None where it stays."""
        if not self.spark.is_alive():
            return Reason.DIED
        forced = self._asked() == "force"
        if forced:
            return Reason.FORCED
        if self._count_live() > 0:
            self._refuse_to_stop()
            self._set_idle(None)
            return None
        if self._idle_since is None:
            self._become_idle()
        reason = self._reason_to_end()
        if reason is None:
            return None
        self.gate = uses.close_gate(self.folder)
        return None if self.gate is None else reason

    def _reason_to_end(self) -> Reason | None:
        if Record.read(self.folder / RECORD) != self.record:
            return Reason.LOST
        if self._asked() is not None:
            return Reason.ASKED
        if not self._is_clean:
            return Reason.UNCLEAN
        is_old = self._idle_since is not None and self.now() - self._idle_since >= self.keep_alive
        return Reason.AGE if is_old else None

    def _count_live(self) -> int:
        live = 0
        for each in list(uses.found(self.folder)):
            self._learn(each.use)
            if each.is_live:
                live += 1
            else:
                self.spark.close_sessions(each.name)
                uses.forget(self.folder, each.name)
        return live

    def _learn(self, use: uses.Use | None) -> None:
        """The command that came last says how long Spark stays."""
        if use is not None and use.started >= self._newest:
            self._newest, self.keep_alive = use.started, use.keep_alive

    def _become_idle(self) -> None:
        gate = uses.close_gate(self.folder)
        if gate is None:
            return  # somebody comes right now
        try:
            self._is_clean = self.spark.tidy()
        finally:
            gate.release()
        self._set_idle(self.now())

    def _set_idle(self, since: float | None) -> None:
        if (since is None) != (self._idle_since is None):
            path = self.folder / IDLE
            if since is None:
                path.unlink(missing_ok=True)
            else:
                private_files.write(path, b"")
        self._idle_since = since

    def _asked(self) -> str | None:
        """How `silt session stop` asked for the end, if it did."""
        asked = private_files.read(self.folder / STOP)
        return None if asked is None else asked.decode()

    def _refuse_to_stop(self) -> None:
        """Takes the request away: somebody uses this Spark, and whoever asked sees that it goes on."""
        if self._asked() is not None:
            (self.folder / STOP).unlink(missing_ok=True)


def write_end(folder: Path, reason: Reason, exit_code: int | None) -> None:
    """Leaves word for the commands that this Spark ends under."""
    private_files.write(folder / ENDED, json.dumps({"reason": reason.name, "code": exit_code}).encode())


def withdraw(folder: Path) -> None:
    """Has nobody find this Spark any more; a request to stop goes last, as its absence before would be a refusal."""
    for left in (RECORD, IDLE, STOP):
        (folder / left).unlink(missing_ok=True)


def how_it_ended(folder: Path) -> tuple[Reason | None, int | None]:
    """Why the last Spark of a folder ended, and the exit code of its Java process; None where nobody could say."""
    values = read_json(folder / ENDED) or {}
    name, code = values.get("reason"), values.get("code")
    reason = next((each for each in Reason if each.name == name), None)
    return reason, (code if isinstance(code, int) else None)
