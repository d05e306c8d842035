"""Writes a class-data archive of Spark's classes, from which Java starts Spark and runs the first statements sooner.

The archive belongs to a virtual environment and its versions of PySpark and of Java; Java ignores an archive that does
not fit. `python -m dbt.adapters.silt.session.class_archive` writes it. The first dbt command that starts Spark in an
environment without an archive runs that module in the background when it ends, except in a container and in CI. No
process waits for it, and its failures are not reported (decision 0048).
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from dbt.adapters.silt.engine.kernel.errors import SparkUnavailableError
from dbt.adapters.silt.session.java import Java, archive_path, find_java
from dbt.adapters.silt.session.rehearsal import rehearse
from dbt.adapters.silt.session.spark import SessionSettings, note_launch, open_session, stop_spark


def write_archive(path: Path, java: Java) -> bool:
    """Starts Spark, runs typical statements, and writes the classes that it loaded to an archive.

    The command line of Java is noted next to it (`java_launch`).

    Returns:
        Whether Java wrote an archive that it can start from; otherwise no archive is kept.

    Raises:
        SparkUnavailableError: if Spark did not start.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        unfinished = Path(folder) / path.name
        options = [f"-XX:ArchiveClassesAtExit={unfinished}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
        settings = SessionSettings(master="local[2]", spark_conf={"spark.driver.extraJavaOptions": " ".join(options)})
        session = open_session(settings)
        note_launch(path, options)
        rehearse(session, folder)
        stop_spark()
        check = [java.path, f"-XX:SharedArchiveFile={unfinished}", "-version"]
        if not unfinished.exists() or subprocess.run(check, capture_output=True, check=False).returncode != 0:
            return False
        os.replace(unfinished, path)
        _forget_others(path, java)
        return True


def _forget_others(path: Path, java: Java) -> None:
    """Deletes the archives that this Java wrote for other files of Spark: they are of no further use."""
    for other in path.parent.glob(f"spark-*-java-{java.release}*"):
        if other.stem != path.stem:
            other.unlink(missing_ok=True)


SWITCH: Final = "SILT_CLASS_ARCHIVE"
"""The environment variable that keeps commands from creating an archive (`off`), or has them do so anywhere (`on`)."""

NOTICE: Final = (
    "When this command ends, Spark's class archive is created in the background, once for this virtual environment: "
    f"later commands start sooner. {SWITCH}=off prevents it"
)

_IN_BACKGROUND = "--in-background"
_NICEST = 19
_OF_CONTAINERS: Final = (Path("/.dockerenv"), Path("/run/.containerenv"))
"""Files that Docker and Podman create in each container."""
_OF_SHORT_LIVED_MACHINES: Final = ("CI", "KUBERNETES_SERVICE_HOST")


def make_after_this_process() -> bool:
    """Has an archive created when this process ends, if it is missing and can be created; returns whether it will."""
    try:
        path = archive_path(find_java())
    except SparkUnavailableError:
        return False
    if path is None or not _is_missing(path) or _reason_against():
        return False
    atexit.register(_start)
    return True


def state() -> str:
    """Describes the archive of this environment's Spark and Java, for display."""
    path = archive_path(find_java())
    if path is None:
        return "none: archives are used in a virtual environment only"
    if path.is_file():
        return str(path)
    if _marker(path).exists():
        return "none: this Java created no usable archive"
    if reason := _reason_against():
        return f"none: {reason}"
    return "none yet: it is created in the background when this command ends"


def _reason_against() -> str | None:
    """Returns why commands in this environment create no archive, if there is a reason."""
    switch = os.environ.get(SWITCH, "").lower()
    if switch == "off":
        return f"{SWITCH} is off"
    is_short_lived = any(os.environ.get(name) for name in _OF_SHORT_LIVED_MACHINES)
    if switch != "on" and (is_short_lived or any(path.exists() for path in _OF_CONTAINERS)):
        command = "python -m dbt.adapters.silt.session.class_archive"
        return f"commands create no archive in a container or in CI; `{command}` does"
    return None


def _is_missing(path: Path) -> bool:
    """Returns whether the archive is missing, the last try did not fail, and the environment is writable."""
    above = next(folder for folder in path.parents if folder.exists())
    return not path.exists() and not _marker(path).exists() and os.access(above, os.W_OK)


def _marker(path: Path) -> Path:
    """Returns the file that records a failed try: another try would fail as well."""
    return path.with_suffix(".failed")


def _start() -> None:
    """Starts this module as a process that outlives this process and does not use the terminal."""
    command = [sys.executable, "-m", "dbt.adapters.silt.session.class_archive", _IN_BACKGROUND]
    nowhere = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0) for stream in range(3)]
    with contextlib.suppress(OSError, RuntimeError):
        os.posix_spawn(sys.executable, command, os.environ, file_actions=nowhere, setsid=True)


def _write_alone(path: Path, java: Java) -> bool:
    """Writes the archive unless it exists or another process is writing it; returns False if Java wrote no archive."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_suffix(".lock"), "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        if path.is_file() or write_archive(path, java):
            _marker(path).unlink(missing_ok=True)
            return True
        _marker(path).write_text("Java created no usable archive. Delete this file to try again.\n")
        return False


def main(arguments: Sequence[str]) -> int:
    """Writes the archive for this environment's Spark and Java if it is missing."""
    if _IN_BACKGROUND in arguments:
        os.nice(_NICEST)
        os.chdir("/")
    java = find_java()
    path = archive_path(java)
    if path is None:
        print("No class-data archive is written outside of a virtual environment.", file=sys.stderr)
    elif not _write_alone(path, java):
        print("This Java cannot write a class-data archive; Spark starts without it.", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
