"""Who uses a kept Spark: each command holds a lock for as long as it lives.

Two locks say so. The gate is held shared by every command, and alone by a Spark that ends: it can end only where
nobody uses it, and nobody begins to use one that ends. A file of the command's own, whose name is the user id of its
sessions, tells the keeper whose sessions to close when that lock is gone.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from dbt.adapters.silt.kept_spark import private_files
from dbt.adapters.silt.kept_spark.locks import Lock, acquire, is_held
from dbt.adapters.silt.kept_spark.record import read_json

GATE = "gate.lock"
USES = "uses"


@dataclass(frozen=True)
class Use:
    """What a command says of itself.

    Attributes:
        pid: its process.
        command: its command line, without the values of options that may be secret.
        keep_alive: how long the Spark is to stay after it, in seconds.
        started: when it began, in seconds since 1970; for people only.
    """

    pid: int
    command: str
    keep_alive: float
    started: float


@dataclass(frozen=True)
class Found:
    """A use that the keeper found.

    Attributes:
        name: the user id of the command's sessions.
        use: what the command says of itself; None where that cannot be read.
        is_live: whether the command still lives.
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
        """Ends the use; the keeper closes its sessions."""
        for lock in self._locks:
            lock.release()
        _held.discard(self)


_held: set[Lease] = set()


def _release_in_child() -> None:
    for lease in tuple(_held):
        lease.release()


os.register_at_fork(after_in_child=_release_in_child)  # a child does not keep its parent's Spark


def take(folder: Path, use: Use) -> Lease:
    """Begins to use whatever Spark is in the folder, or will be; waits for one that ends.

    Raises:
        KeptSparkError: the folder cannot be used.
    """
    gate = acquire(folder / GATE, shared=True)
    assert gate is not None
    name = uuid.uuid4().hex
    uses = private_files.private_folder(folder / USES)
    unfinished = uses / f".{name}"
    private_files.write(unfinished, json.dumps(asdict(use)).encode())
    own = acquire(unfinished)
    assert own is not None
    os.rename(unfinished, uses / name)  # by now it is locked: nobody sees a use that looks ended
    return Lease(name, gate, own)


def found(folder: Path) -> Iterator[Found]:
    """The uses in the folder, those that ended among them."""
    for path in sorted((folder / USES).glob("[0-9a-f]*")):
        values = read_json(path)
        is_live = is_held(path)
        yield Found(path.name, None if values is None else Use(**values), is_live)


def forget(folder: Path, name: str) -> None:
    """Deletes a use that ended."""
    (folder / USES / name).unlink(missing_ok=True)


def close_gate(folder: Path) -> Lock | None:
    """Keeps everybody from beginning to use the Spark until the lock is released; None where somebody uses it."""
    return acquire(folder / GATE, wait=False)
