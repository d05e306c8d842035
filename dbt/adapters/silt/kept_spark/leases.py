"""Describes a kept Spark in a file, and records which commands use it.

Each command holds two locks for as long as it runs. The first is the gate: commands hold it shared, and a Spark that is
about to end holds it exclusively. So a Spark ends only if no command uses it, and no command starts to use a Spark that
is ending. The second is on the command's own file, which is named after the user id of its sessions: when that lock is
released, the keeper closes these sessions.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from dbt.adapters.silt.kept_spark import private_files
from dbt.adapters.silt.kept_spark.private_files import Lock, acquire, is_held

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


@dataclass(frozen=True)
class Record:
    """Describes how to reach a kept Spark.

    Attributes:
        port: the port on 127.0.0.1 on which the Spark listens.
        token: the secret that a client must present; it is in no log and no message.
        keeper: the id of the process that watches over the Spark.
        java: the id of the Java process.
        started: the time of the start, in seconds since 1970; for people only.
        spark: the version of Spark.
        package: the version of this package.
        application: the id of the Spark application.
        master: the Spark master.
        folder: the working directory: the project's folder.
        machine: the running system, as `inherited_environment.machine` names it.
    """

    port: int
    token: str = field(repr=False)
    keeper: int
    java: int
    started: float
    spark: str
    package: str
    application: str
    master: str
    folder: str
    machine: str

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def write(self, path: Path) -> None:
        private_files.write(path, json.dumps(asdict(self)).encode())

    @classmethod
    def read(cls, path: Path) -> Record | None:
        """Reads a record, or returns None if the file is missing or another version of this package wrote it.

        Raises:
            KeptSparkError: if another user can read or write the file.
        """
        values = read_json(path)
        if values is None or set(values) != {each.name for each in fields(cls)}:
            return None
        return cls(**values)


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
    """Yields the commands of the folder, including ended commands."""
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


def read_json(path: Path) -> dict[str, Any] | None:
    """Reads the JSON object in a file of this user, or returns None if the file is missing or holds no object.

    Raises:
        KeptSparkError: if another user can read or write the file.
    """
    try:
        values = json.loads(private_files.read(path) or b"null")
    except ValueError:
        return None
    return values if isinstance(values, dict) else None
