"""Records which commands use a kept Spark: each command holds two locks for as long as it runs.

The first is the gate: commands hold it shared, and a Spark that is about to end holds it exclusively. So a Spark ends
only if no command uses it, and no command starts to use a Spark that is ending. The second is on the command's own
file, which is named after the user id of its sessions: when that lock is released, the keeper closes these sessions.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from dbt.adapters.silt.kept_spark import private_files
from dbt.adapters.silt.kept_spark.private_files import Lock, acquire, is_held
from dbt.adapters.silt.kept_spark.record import read_json

GATE = "gate.lock"
USES = "uses"


@dataclass(frozen=True)
class Use:
    """Describes a command that uses a Spark.

    Attributes:
        pid: the process id.
        command: the command line, without the values of options that may be secret.
        keep_alive: how long to keep the Spark after the command, in seconds.
        started: the time of the start, in seconds since 1970; for people only.
    """

    pid: int
    command: str
    keep_alive: float
    started: float


@dataclass(frozen=True)
class Found:
    """A command that the keeper found.

    Attributes:
        name: the user id of the command's sessions.
        use: the description of the command, or None if its file cannot be read.
        is_live: whether the command still runs.
    """

    name: str
    use: Use | None
    is_live: bool


class Lease:
    """The right to use a kept Spark, until it is released or its process ends.

    Attributes:
        name: the user id of the sessions.
    """

    def __init__(self, name: str, gate: Lock, own: Lock) -> None:
        self.name = name
        self._locks = (gate, own)
        _held.add(self)

    def release(self) -> None:
        """Ends the use of the Spark; the keeper closes the sessions of the command."""
        for lock in self._locks:
            lock.release()
        _held.discard(self)


_held: set[Lease] = set()


def _release_in_child() -> None:
    for lease in tuple(_held):
        lease.release()


os.register_at_fork(after_in_child=_release_in_child)  # a child does not keep its parent's Spark


def take(folder: Path, use: Use) -> Lease:
    """Registers this command as a user of the folder's Spark, which may not run yet; waits while a Spark is ending.

    Raises:
        KeptSparkError: if the folder cannot be used.
    """
    gate = acquire(folder / GATE, shared=True)
    assert gate is not None
    name = uuid.uuid4().hex
    uses = private_files.private_folder(folder / USES)
    unfinished = uses / f".{name}"
    private_files.write(unfinished, json.dumps(asdict(use)).encode())
    own = acquire(unfinished)
    assert own is not None
    os.rename(unfinished, uses / name)  # already locked, so it never looks like an ended command's file
    return Lease(name, gate, own)


def found(folder: Path) -> Iterator[Found]:
    """Yields the commands of the folder, also the ended commands."""
    for path in sorted((folder / USES).glob("[0-9a-f]*")):
        values = read_json(path)
        is_live = is_held(path)
        yield Found(path.name, None if values is None else Use(**values), is_live)


def forget(folder: Path, name: str) -> None:
    """Deletes the file of an ended command."""
    (folder / USES / name).unlink(missing_ok=True)


def close_gate(folder: Path) -> Lock | None:
    """Locks out new commands until the lock is released; returns None if a command uses the Spark."""
    return acquire(folder / GATE, wait=False)
