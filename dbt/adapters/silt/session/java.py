"""Finds the Java that Spark runs on, checks its version, and builds its start options."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Final

from dbt.adapters.silt.engine.kernel.errors import SparkUnavailableError

MINIMUM_VERSION = 17
"""The oldest version that Spark 4 runs on."""

_REMEDY = f"Install Java {MINIMUM_VERSION} or later, and set JAVA_HOME or PATH to it"
_VERSION = re.compile(r'version "(?:1\.)?(\d+)([^"]*)"')
_LOGGING = Path(__file__).with_name("log4j2.properties")
_GIB = 1024**3

_SHORT_PROCESSES: Final = (
    # Java's second compiler took half of the processor time of a short run, for code that then hardly ran. Code that
    # millions of rows run through passes these counts in its first moments.
    "-XX:Tier4InvocationThreshold=250000",
    "-XX:Tier4MinInvocationThreshold=30000",
    "-XX:Tier4CompileThreshold=750000",
    "-XX:Tier4BackEdgeThreshold=2000000",
    # Otherwise the garbage of a nearly empty heap is collected each time that some thousand classes are loaded.
    "-XX:MetaspaceSize=256m",
    # Otherwise Java creates a class for each method that is often called by its name, as Python calls every method.
    "-Dsun.reflect.inflationThreshold=10000",
)


@dataclass(frozen=True)
class Java:
    """An installed Java.

    Attributes:
        path: its command.
        version: the feature release: 17, 21 ...
        release: the whole version, as Java prints it.
    """

    path: str
    version: int
    release: str


def find_java() -> Java:
    """Returns the Java that Spark would start: from JAVA_HOME if it is set, else the first on PATH.

    Raises:
        SparkUnavailableError: if Java is missing, does not run, or is too old.
    """
    home = os.environ.get("JAVA_HOME")
    path = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if path is None:
        where = f"JAVA_HOME ({home}) contains no Java" if home else "Java is not installed"
        raise SparkUnavailableError(f"{where}, but Spark needs it", remedy=_REMEDY)
    java = _ask(path)
    if java.version < MINIMUM_VERSION:
        origin = "JAVA_HOME" if home else "PATH"
        raise SparkUnavailableError(
            f"the Java of {origin} ({path}) is version {java.version}, but Spark needs {MINIMUM_VERSION} or later",
            remedy=_REMEDY,
            details={"java": path, "version": java.version},
        )
    return java


def driver_options(temporary: str, archive: Path | None) -> list[str]:
    """Returns the start options of Spark's Java, which are added to the user's.

    Args:
        temporary: a folder for files that would otherwise be left in the working directory, or be readable by other
            users in `/tmp`.
        archive: the class-data archive to start from (`class_archive`), if it exists.
    """
    places = (f"-Dderby.system.home={temporary}", f"-Djava.io.tmpdir={temporary}")
    options = [f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}", *places, *_SHORT_PROCESSES]
    if archive is not None:
        options += [f"-XX:SharedArchiveFile={archive}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
    return options


def archive_path(java: Java) -> Path | None:
    """Returns the path of the class-data archive for this Java and Spark, or None outside of a virtual environment.

    Java silently ignores an archive if a file of Spark has changed or moved since the archive was created: so the name
    contains a digest of these files and of the edition of the statements that are run to create it.
    """
    if sys.prefix == sys.base_prefix:
        return None
    name = f"spark-{version('pyspark')}-java-{java.release}-{_digest(spark_home() / 'jars')}.jsa"
    return Path(sys.prefix) / "var" / "dbt-silt" / name


def spark_home() -> Path:
    """Returns the folder of the Spark that pyspark starts; pyspark need not be imported yet."""
    given = os.environ.get("SPARK_HOME")
    if given:
        return Path(given)
    found = importlib.util.find_spec("pyspark")
    assert found is not None and found.submodule_search_locations
    return Path(found.submodule_search_locations[0])


def default_memory() -> str:
    """Returns half of the memory that this process may use, between 1 and 8 GiB, in Spark's notation."""
    half = _memory_bytes() // 2
    return f"{max(_GIB, min(8 * _GIB, half)) // 1024**2}m"


_ARCHIVE_EDITION: Final = 2
"""Counts the changes of the statements that create an archive; an old archive of an environment is then re-created."""


def _digest(folder: Path) -> str:
    """Returns a digest of a folder's path and its files' names, sizes and times."""
    files = [(each.name, each.stat()) for each in os.scandir(folder)] if folder.is_dir() else []
    known = sorted((name, found.st_size, found.st_mtime_ns) for name, found in files)
    return hashlib.sha256(repr((_ARCHIVE_EDITION, str(folder), known)).encode()).hexdigest()[:8]


@cache
def _ask(path: str) -> Java:
    try:
        answer = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SparkUnavailableError(f"{path} cannot be run ({error})", remedy=_REMEDY) from error
    match = _VERSION.search(answer.stderr + answer.stdout)
    if match is None:
        raise SparkUnavailableError(f"{path} does not print its Java version", remedy=_REMEDY)
    return Java(path, int(match[1]), match[1] + match[2])


def _memory_bytes() -> int:
    """Returns the memory of the machine, or the limit of the container if that is lower."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            limits.append(int(Path(limit).read_text()))
        except (OSError, ValueError):
            continue  # this kind of limit does not exist here, or is not set ("max")
    return min(limits)
