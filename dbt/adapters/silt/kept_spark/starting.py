"""Starts the keeper of a Spark: a process that outlives the command that needed the Spark first."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from dbt.adapters.silt.engine.kernel.errors import KeptSparkError, SparkUnavailableError
from dbt.adapters.silt.kept_spark import inherited_environment, leases
from dbt.adapters.silt.kept_spark.finding import Start
from dbt.adapters.silt.kept_spark.private_files import Lock, is_held
from dbt.adapters.silt.kept_spark.watch import ALIVE, LOG

READY, LIVING = 3, 4
"""The descriptors on which the keeper answers when Spark is ready, and holds the lock of a living keeper."""

_KEEPER = "dbt.adapters.silt.session.keeper"
_HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGPIPE, signal.SIGCHLD)
_SECONDS_UNUSED = 14 * 86400


def keeper_of(settings: Mapping[str, object]) -> Start:
    """Returns a function that starts keepers.

    Args:
        settings: settings of the keeper. The settings may hold secrets, so they are never on a command line.
    """
    return lambda folder, alive: _start(settings, folder, alive)


def _start(settings: Mapping[str, object], folder: Path, alive: Lock) -> None:
    sweep(folder.parent)
    answers, ready = os.pipe()
    given, gives = os.pipe()
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    log = os.open(folder / LOG, flags, 0o600)
    try:
        _spawn(folder, {0: given, 1: log, 2: log, READY: ready, LIVING: alive.descriptor})
    finally:
        for descriptor in (given, log, ready):
            os.close(descriptor)
    with contextlib.suppress(BrokenPipeError), os.fdopen(gives, "wb") as file:
        file.write(json.dumps(settings).encode())
    with os.fdopen(answers, "rb") as file:
        answer = file.read()  # until the keeper is ready or has ended
    if answer:
        raise_problem(json.loads(answer), folder)


def _spawn(folder: Path, descriptors: Mapping[int, int]) -> None:
    """Starts the process in a session of its own, which gets no signals of the terminal."""
    above = len(descriptors)  # a descriptor must not be overwritten before it is copied
    copies = {number: fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, above) for number, each in descriptors.items()}
    try:
        os.posix_spawn(
            sys.executable,
            [sys.executable, "-m", _KEEPER, str(folder)],
            inherited_environment.environment_of_server(),
            file_actions=[(os.POSIX_SPAWN_DUP2, copy, number) for number, copy in copies.items()],
            setsid=True,
            setsigmask=(),
            setsigdef=_HANDLED,
        )
    finally:
        for copy in copies.values():
            os.close(copy)


def answer(problem: BaseException | None) -> None:
    """Reports from the keeper that Spark can be used, or why it did not start."""
    with os.fdopen(READY, "wb") as file:
        said = {"ready": problem is None, "problem": getattr(problem, "problem", None) or repr(problem)}
        file.write(json.dumps({**said, "remedy": getattr(problem, "action", None)}).encode())


def raise_problem(answered: Mapping[str, object], folder: Path) -> None:
    """Raises the error that a keeper sent, if its answer is an error.

    Raises:
        SparkUnavailableError: if Spark did not start.
    """
    if not answered["ready"]:
        log = folder / LOG
        remedy = answered["remedy"] or f"Check `master` and `spark_conf` in the profile; for details see {log}"
        raise SparkUnavailableError(str(answered["problem"]), remedy=str(remedy), details={"log": str(log)})


def sweep(base: Path) -> None:
    """Deletes the folders that no command has used for two weeks."""
    oldest = time.time() - _SECONDS_UNUSED
    for folder in base.iterdir():
        with contextlib.suppress(OSError, KeptSparkError):
            if folder.stat().st_mtime < oldest and not is_held(folder / ALIVE):
                _delete_unused(folder)


def _delete_unused(folder: Path) -> None:
    gate = leases.close_gate(folder)
    if gate is not None:
        shutil.rmtree(folder, ignore_errors=True)
        gate.release()
