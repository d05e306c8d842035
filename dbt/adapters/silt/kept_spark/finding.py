"""Finds the Spark of a folder, or has one started: of commands that begin at once, one starts it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dbt.adapters.silt.engine.kernel.errors import KeptSparkError
from dbt.adapters.silt.kept_spark import private_files, uses
from dbt.adapters.silt.kept_spark.locks import Lock, acquire, is_held
from dbt.adapters.silt.kept_spark.record import Record
from dbt.adapters.silt.kept_spark.uses import Lease, Use
from dbt.adapters.silt.kept_spark.watch import ALIVE, ENDED, IDLE, LOG, RECORD, STOP

_START = "start.lock"
_WAIT_SECONDS = 0.05


@dataclass(frozen=True)
class Attached:
    """A Spark that runs, and the right to use it.

    Attributes:
        folder: its own.
        is_new: whether it was started for this command.
    """

    folder: Path
    record: Record
    lease: Lease
    is_new: bool

    def is_alive(self) -> bool:
        """Whether it is this one that runs: another may have been started in its folder since it ended."""
        return running(self.folder) == self.record


Start = Callable[[Path, Lock], None]
"""Starts the keeper of a folder, hands it the lock that says that it lives, and waits until Spark can be reached."""


def attach(folder: Path, use: Use, start: Start) -> Attached:
    """Uses the Spark of a folder, which is started if it does not run.

    Raises:
        SparkUnavailableError: it cannot be started, or the folder cannot be used.
    """
    private_files.private_folder(folder)
    lease = uses.take(folder, use)  # from here on it does not end for its age
    try:
        record = running(folder)
        if record is not None:
            return Attached(folder, record, lease, is_new=False)
        return _attach_first(folder, lease, start)
    except BaseException:
        lease.release()
        raise


def _attach_first(folder: Path, lease: Lease, start: Start) -> Attached:
    starting = acquire(folder / _START)
    assert starting is not None
    try:
        record = _awaited(folder)
        if record is not None:
            return Attached(folder, record, lease, is_new=False)
        alive = acquire(folder / ALIVE)
        assert alive is not None
        try:
            for left in (RECORD, STOP, IDLE, ENDED):
                (folder / left).unlink(missing_ok=True)
            start(folder, alive)
        finally:
            alive.release()  # the keeper has inherited it
    finally:
        starting.release()
    record = running(folder)
    if record is None:
        raise KeptSparkError("Spark ended as soon as it had started", remedy=f"Look into {folder / LOG}")
    return Attached(folder, record, lease, is_new=True)


def running(folder: Path) -> Record | None:
    """The Spark of a folder, if it can be reached."""
    return Record.read(folder / RECORD) if is_held(folder / ALIVE) else None


def _awaited(folder: Path) -> Record | None:
    """The Spark of a folder, also one that is about to be there: whoever started it was killed meanwhile."""
    while is_held(folder / ALIVE):
        record = Record.read(folder / RECORD)
        if record is not None:
            return record
        time.sleep(_WAIT_SECONDS)
    return None
