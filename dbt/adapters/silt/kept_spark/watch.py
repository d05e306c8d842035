"""Decides when a kept Spark ends: the rule that its keeper applies step by step."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from dbt.adapters.silt.kept_spark import leases, private_files
from dbt.adapters.silt.kept_spark.leases import Record, read_json
from dbt.adapters.silt.kept_spark.private_files import Lock

RECORD = "spark.json"
ALIVE = "alive.lock"
STOP = "stop"
IDLE = "idle"
ENDED = "ended.json"
LOG = "spark.log"


class Reason(StrEnum):
    """Why a kept Spark ended."""

    AGE = "it was no longer used"
    ASKED = "`silt session stop` requested it"
    FORCED = "`silt session stop --force` ended it"
    UNCLEAN = "the state left by its commands could not be cleaned up"
    SIGNALLED = "a signal ended the process that manages it"
    LOST = "its folder was deleted or replaced"
    DIED = "its Java process ended"


class Spark(Protocol):
    """The Spark that a keeper watches over."""

    def is_alive(self) -> bool:
        """Returns whether its process runs."""
        ...

    def close_sessions(self, user: str) -> None:
        """Cancels the statements of a client's sessions, and closes the sessions."""
        ...

    def tidy(self) -> bool:
        """Deletes the state that sessions share; returns whether nothing is left. No session is open."""
        ...


@dataclass
class Watch:
    """Watches over a Spark.

    Args:
        folder: the folder of the record and of the locks of commands.
        record: the expected record; a different record in the folder means that commands can no longer find this Spark.
        now: returns the seconds of a clock that is never set and stops while the machine sleeps.
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
    """The lock that is held from the decision to end Spark until this process ends."""

    def step(self) -> Reason | None:
        """Closes the sessions of commands that ended; returns why this Spark ends now, or None if it continues."""
        if not self.spark.is_alive():
            return Reason.DIED
        forced = self._stop_request() == "force"
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
        self.gate = leases.close_gate(self.folder)
        return None if self.gate is None else reason

    def _reason_to_end(self) -> Reason | None:
        if Record.read(self.folder / RECORD) != self.record:
            return Reason.LOST
        if self._stop_request() is not None:
            return Reason.ASKED
        if not self._is_clean:
            return Reason.UNCLEAN
        is_old = self._idle_since is not None and self.now() - self._idle_since >= self.keep_alive
        return Reason.AGE if is_old else None

    def _count_live(self) -> int:
        live = 0
        for each in list(leases.found(self.folder)):
            self._learn(each.use)
            if each.is_live:
                live += 1
            else:
                self.spark.close_sessions(each.name)
                leases.forget(self.folder, each.name)
                self._set_idle(None)  # its idle time begins now, even if the command began and ended between two steps
        return live

    def _learn(self, use: leases.Use | None) -> None:
        """Adopts the `keep_alive` of the newest command."""
        if use is not None and use.started >= self._newest:
            self._newest, self.keep_alive = use.started, use.keep_alive

    def _become_idle(self) -> None:
        gate = leases.close_gate(self.folder)
        if gate is None:
            return  # a command begins at this moment
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

    def _stop_request(self) -> str | None:
        """Returns the request of `silt session stop`, or None without a request."""
        asked = private_files.read(self.folder / STOP)
        return None if asked is None else asked.decode()

    def _refuse_to_stop(self) -> None:
        """Deletes the request, because commands use this Spark; `silt session stop` then reports that it continues."""
        if self._stop_request() is not None:
            (self.folder / STOP).unlink(missing_ok=True)


def write_end(folder: Path, reason: Reason, exit_code: int | None) -> None:
    """Records why this Spark ended, for the commands that still use it."""
    private_files.write(folder / ENDED, json.dumps({"reason": reason.name, "code": exit_code}).encode())


def withdraw(folder: Path) -> None:
    """Hides this Spark from new commands. The request to stop is deleted last: its absence would mean a refusal."""
    for left in (RECORD, IDLE, STOP):
        (folder / left).unlink(missing_ok=True)


def how_it_ended(folder: Path) -> tuple[Reason | None, int | None]:
    """Returns why the last Spark of a folder ended, and the exit code of its Java process; None for an unknown part."""
    values = read_json(folder / ENDED) or {}
    name, code = values.get("reason"), values.get("code")
    reason = next((each for each in Reason if each.name == name), None)
    return reason, (code if isinstance(code, int) else None)
