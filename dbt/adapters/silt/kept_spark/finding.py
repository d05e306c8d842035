"""Finds the Spark of a folder, or starts it; if several commands begin at once, only the first starts it."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dbt.adapters.silt.engine.kernel.errors import KeptSparkError
from dbt.adapters.silt.kept_spark import leases, private_files
from dbt.adapters.silt.kept_spark.leases import Lease, Record, Use
from dbt.adapters.silt.kept_spark.private_files import Lock, acquire, is_held
from dbt.adapters.silt.kept_spark.watch import ALIVE, ENDED, IDLE, LOG, RECORD, STOP

_START = "start.lock"
_WAIT_SECONDS = 0.05
_ANSWER_SECONDS = 10


@dataclass(frozen=True)
class Attached:
    """A Spark that runs, and the right to use it.

    Attributes:
        folder: the folder of the Spark.
        is_new: whether this command started the Spark.
    """

    folder: Path
    record: Record
    lease: Lease
    is_new: bool

    def is_alive(self) -> bool:
        """Returns whether this Spark still runs, rather than a later Spark of the same folder."""
        return running(self.folder) == self.record

    def can_be_used(self) -> bool:
        """Returns whether its Java process also accepts connections: its end is recorded a moment later."""
        return self.is_alive() and listens(self.record)

    def wait_for_end(self) -> None:
        """Waits until its keeper has recorded the end of its Java process, if the keeper still runs."""
        deadline = time.monotonic() + _ANSWER_SECONDS
        while self.is_alive() and time.monotonic() < deadline:
            time.sleep(_WAIT_SECONDS)


def listens(record: Record) -> bool:
    """Returns whether a Spark accepts connections."""
    try:
        socket.create_connection(("127.0.0.1", record.port), _ANSWER_SECONDS).close()
    except ConnectionRefusedError:
        return False
    except OSError:
        return True  # it is busy, or this process has too many open files
    return True


Start = Callable[[Path, Lock], None]
"""Starts the keeper of a folder with the lock that the keeper holds while it runs, and waits until Spark answers."""


def attach(folder: Path, use: Use, start: Start, answers: Callable[[Record], bool] = listens) -> Attached:
    """Attaches to the Spark of a folder, and starts it if it does not run.

    Args:
        answers: returns whether a Spark accepts connections; if its Java process has ended, its keeper notices it soon,
            and a new Spark is started.

    Raises:
        SparkUnavailableError: if Spark cannot be started, or the folder cannot be used.
    """
    private_files.private_folder(folder)
    lease = leases.take(folder, use)  # from here on the Spark does not end because of its age
    try:
        deadline = time.monotonic() + _ANSWER_SECONDS
        while (record := running(folder)) is not None:
            if answers(record) or time.monotonic() > deadline:
                return Attached(folder, record, lease, is_new=False)
            time.sleep(_WAIT_SECONDS)
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
        raise KeptSparkError("Spark ended right after its start", remedy=f"Read {folder / LOG}")
    return Attached(folder, record, lease, is_new=True)


def running(folder: Path) -> Record | None:
    """Returns the Spark of a folder, or None if no Spark of it answers."""
    return Record.read(folder / RECORD) if is_held(folder / ALIVE) else None


def _awaited(folder: Path) -> Record | None:
    """Returns the Spark of a folder; waits for a Spark that still starts although its first command was killed."""
    while is_held(folder / ALIVE):
        record = Record.read(folder / RECORD)
        if record is not None:
            return record
        time.sleep(_WAIT_SECONDS)
    return None
