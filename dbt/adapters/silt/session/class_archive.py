"""Writes a class-data archive of Spark's classes, with which Java starts Spark, and runs the first statements, sooner.

The archive belongs to a virtual environment, for one version of PySpark and of Java; Java ignores one that does not fit
it. `python -m dbt.adapters.silt.session.class_archive` writes it. The first dbt command that starts Spark in an
environment without one starts that module as it ends, in the background: nothing waits for it, and no failure of it
reaches anybody (decision 0048).
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

    Next to it the command line of Java is noted (`java_launch`).

    Returns:
        Whether Java made an archive that it can start from; if not, none is kept.

    Raises:
        SparkUnavailableError: Spark did not start.
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
    """Deletes the archives that this Java made of other files of Spark: nothing starts from them any more."""
    for other in path.parent.glob(f"spark-*-java-{java.release}*"):
        if other.stem != path.stem:
            other.unlink(missing_ok=True)


SWITCH: Final = "SILT_CLASS_ARCHIVE"
"""The environment variable that keeps commands from making an archive: `off`."""

_IN_BACKGROUND = "--in-background"
_NICEST = 19


def make_after_this_process() -> None:
    """Has an archive made once this process ends, if there is none and it can be one."""
    try:
        path = archive_path(find_java())
    except SparkUnavailableError:
        return
    if os.environ.get(SWITCH, "").lower() != "off" and path is not None and _is_wanted(path):
        atexit.register(_start)


def state() -> str:
    """What there is of an archive for this environment's Spark and Java, for people."""
    path = archive_path(find_java())
    if path is None:
        return "none: Spark starts from one in a virtual environment only"
    if path.is_file():
        return str(path)
    if _marker(path).exists():
        return "none: this Java has made none that it can start from"
    if os.environ.get(SWITCH, "").lower() == "off":
        return f"none: {SWITCH} is off"
    return "none yet: it is made in the background when this command ends"


def _is_wanted(path: Path) -> bool:
    """Whether there is none, the last try did not fail, and the environment can be written."""
    above = next(folder for folder in path.parents if folder.exists())
    return not path.exists() and not _marker(path).exists() and os.access(above, os.W_OK)


def _marker(path: Path) -> Path:
    """The file that says that a try has failed: another would fail as well."""
    return path.with_suffix(".failed")


def _start() -> None:
    """Starts this module as a process that outlives this one, and gets nothing of a terminal's."""
    command = [sys.executable, "-m", "dbt.adapters.silt.session.class_archive", _IN_BACKGROUND]
    nowhere = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0) for stream in range(3)]
    with contextlib.suppress(OSError, RuntimeError):
        os.posix_spawn(sys.executable, command, os.environ, file_actions=nowhere, setsid=True)


def _write_alone(path: Path, java: Java) -> bool:
    """Writes the archive unless it is there or another process is at it; whether there is nothing left to do."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_suffix(".lock"), "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        if path.is_file() or write_archive(path, java):
            _marker(path).unlink(missing_ok=True)
            return True
        _marker(path).write_text("Java made no archive that it can start from. Delete this file to try again.\n")
        return False


def main(arguments: Sequence[str]) -> int:
    """Writes the archive for this environment's Spark and Java if it is not there yet."""
    if _IN_BACKGROUND in arguments:
        os.nice(_NICEST)
        os.chdir("/")
    java = find_java()
    path = archive_path(java)
    if path is None:
        print("No class-data archive is written outside of a virtual environment.", file=sys.stderr)
    elif not _write_alone(path, java):
        print("This Java writes no class-data archive; Spark starts without.", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
