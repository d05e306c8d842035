"""Lists and ends the kept Sparks of this user."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dbt.adapters.silt.engine.kernel.errors import KeptSparkError, KeptSparkInUseError
from dbt.adapters.silt.kept_spark import finding, inherited_environment, leases, private_files
from dbt.adapters.silt.kept_spark.leases import Record, Use
from dbt.adapters.silt.kept_spark.private_files import is_held
from dbt.adapters.silt.kept_spark.watch import ALIVE, IDLE, STOP

_WAIT_SECONDS = 0.05
_PATIENCE_SECONDS = 30


@dataclass(frozen=True)
class KeptSpark:
    """A kept Spark that runs.

    Attributes:
        folder: the folder of the Spark.
        users: the commands that use the Spark now.
        idle_since: when the last command ended, in seconds since 1970; None while a command uses the Spark.
    """

    folder: Path
    record: Record
    users: tuple[Use, ...]
    idle_since: float | None

    @property
    def name(self) -> str:
        return self.folder.name


def running(base: Path | None = None) -> Iterator[KeptSpark]:
    """Yields the kept Sparks of this user on this machine, the oldest first.

    Args:
        base: the folder of all kept Sparks; by default this user's.

    Raises:
        KeptSparkError: if another user can read or write a file.
    """
    base = base or private_files.base_folder()
    if not base.is_dir():
        return
    private_files.private_folder(base)
    here = inherited_environment.machine()
    known = ((folder, finding.running(folder)) for folder in base.iterdir() if folder.is_dir())
    found = [(folder, record) for folder, record in known if record is not None and record.machine == here]
    for folder, record in sorted(found, key=lambda each: each[1].started):
        live = [each.use for each in leases.found(folder) if each.is_live and each.use is not None]
        yield KeptSpark(folder, record, tuple(live), _idle_since(folder))


def memory(spark: KeptSpark) -> int | None:
    """Returns the bytes of memory that the two processes of a Spark take, or None if the system does not know."""
    known = [_resident(pid) for pid in (spark.record.java, spark.record.keeper)]
    return sum(each for each in known if each is not None) or None


def _resident(pid: int) -> int | None:
    try:
        pages = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        said = _ask("rss=", pid).strip()
        return int(said) * 1024 if said.isdigit() else None


def _ask(what: str, pid: int) -> str:
    """Returns the output of `ps` for a process; empty if the process or `ps` does not exist."""
    with contextlib.suppress(OSError):
        command = ["ps", "-ww", "-o", what, "-p", str(pid)]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return ""


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return _ask("args=", pid)


def stop(spark: KeptSpark, *, force: bool = False) -> None:
    """Ends a kept Spark, and waits for its end.

    Args:
        force: whether to end the Spark while commands use it; their statements fail and commit nothing.

    Raises:
        KeptSparkInUseError: if commands use the Spark, which then continues to run.
        KeptSparkError: if the Spark does not end.
    """
    if spark.users and not force:
        raise _in_use(spark)
    request = spark.folder / STOP
    private_files.write(request, b"force" if force else b"idle")
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while _is_there(spark):
        if not force and not request.exists() and finding.running(spark.folder) == spark.record:
            raise _in_use(spark)
        if time.monotonic() > deadline:
            _kill(spark, force)
            deadline += _PATIENCE_SECONDS
            force = True
        time.sleep(_WAIT_SECONDS)


def _is_there(spark: KeptSpark) -> bool:
    """Returns whether this Spark still runs, rather than a later Spark of the same folder."""
    return is_held(spark.folder / ALIVE) and finding.running(spark.folder) in (spark.record, None)


def _kill(spark: KeptSpark, force: bool) -> None:
    """Kills a keeper that does not end when it is asked to; Java ends with the keeper."""
    if not force or str(spark.folder) not in _command_line(spark.record.keeper):
        raise KeptSparkError(f"the Spark {spark.name} did not stop", remedy="Try again with `--force`")
    with contextlib.suppress(ProcessLookupError):
        os.kill(spark.record.keeper, signal.SIGKILL)


def _in_use(spark: KeptSpark) -> KeptSparkInUseError:
    names = ", ".join(f"{use.command} (process {use.pid})" for use in spark.users) or "a command that has just started"
    return KeptSparkInUseError(f"the Spark {spark.name} is used by {names}")


def _idle_since(folder: Path) -> float | None:
    try:
        return (folder / IDLE).stat().st_mtime
    except FileNotFoundError:
        return None
