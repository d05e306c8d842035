"""Creates the process's SparkSession: embedded, kept, on a cluster's master, or from a server.

A process has a single Spark. The first session starts it, quietly and without files in the working directory; a Spark
that the program itself has started is used unchanged. Every connection gets a session of its own, with its own
temporary views and settings: a new session costs less than cleaning a used session (`docs/decisions`).
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import re
import shutil
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine import spark_seams
from dbt.adapters.silt.engine.commands.spark import session_settings, shown_settings
from dbt.adapters.silt.engine.commands.spark.shown_settings import setting
from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError, SparkUnavailableError
from dbt.adapters.silt.kept_spark.inherited_environment import umask
from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.session import cluster, jars, java_launch, kept, local_spark
from dbt.adapters.silt.session.jars import SparkStorage, not_brought
from dbt.adapters.silt.session.java_launch import (
    Java,
    archive_path,
    default_memory,
    driver_options,
    find_java,
    spark_home,
)

if TYPE_CHECKING:
    from dbt.adapters.silt.session import accelerator, connect_client
else:
    accelerator = lazy_module("dbt.adapters.silt.session.accelerator")
    connect_client = lazy_module("dbt.adapters.silt.session.connect_client")

_logger = logging.getLogger(__name__)

# This warning would appear in every command, and users cannot act on it; this package is tested with pandas 3.
warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)


@dataclass(frozen=True)
class SessionSettings:
    """The Spark to use, and its settings.

    Attributes:
        master: the master of an embedded driver: `local[*]`, `spark://host:port`, `yarn` ...
        remote: a Spark Connect server, `sc://host:port`; then `master` is not used.
        spark_conf: the user's Spark settings; they override the defaults here, but not settings that correctness needs.
        keep_alive: how long a kept Spark, on `master`, outlives the last process that used it; None: this process has
            its own Spark, which ends with it.
        storage: its settings and jars for object stores.
    """

    master: str = "local[*]"
    remote: str | None = None
    spark_conf: Mapping[str, object] = field(default_factory=dict)
    keep_alive: timedelta | None = None
    storage: SparkStorage = field(default_factory=SparkStorage)


def open_session(settings: SessionSettings) -> SparkSession:
    """Creates a session of this process's Spark, which is started if it does not run yet.

    Raises:
        InvalidSettingError: if `spark_conf` contradicts a setting that correctness needs, or a setting of the running
            Spark that only a new Spark can change.
        SparkUnavailableError: if a suitable Java is missing, Spark does not start, or the server cannot be reached.
    """
    session_settings.check({name: str(value) for name, value in settings.spark_conf.items()})
    _silence_query_contexts()
    if settings.keep_alive is not None:
        return _of_kept(kept.session, settings, settings.keep_alive)
    with _lock:
        session = _connect(settings.remote) if settings.remote else _embedded(settings).newSession()
        if _running is None or _running.settings != settings:
            _apply(session, settings)
    return session


def why_not_kept(settings: SessionSettings) -> str | None:
    """Returns why these settings start a Spark next to a kept Spark of this folder, or None if they do not."""
    if settings.remote:
        return None
    is_kept = settings.keep_alive is not None
    return kept.why_not_used(settings.master, _as_strings(settings.spark_conf), settings.storage, is_kept=is_kept)


def start_spark(settings: SessionSettings) -> None:
    """Starts this process's Spark, embedded or kept, if it does not run yet; raises as `open_session` does.

    Args:
        settings: settings without `remote`.
    """
    session_settings.check({name: str(value) for name, value in settings.spark_conf.items()})
    if settings.keep_alive is not None:
        _of_kept(kept.attach, settings, settings.keep_alive)
        return
    with _lock:
        _embedded(settings)


def has_only_own_spark() -> bool:
    """Returns whether this process runs no Spark that its program has started."""
    context = spark_seams.active_context()
    return context is None or (_running is not None and _running.context is context)


def stop_spark() -> None:
    """Stops the Spark that this module has started, with its sessions, and waits for its Java to end."""
    global _running
    with _lock:
        if _running is not None:
            running, _running = _running, None
            running.stop()


def forget_ended(seconds: float) -> bool:
    """Forgets the Spark that this module has started if its Java has ended, so that the next session starts another.

    Args:
        seconds: how long to wait for the end of a Java that does not answer.

    Returns:
        whether it has ended.
    """
    global _running
    with _lock:
        running = _running
        if running is None or running.java is None:
            return False
        try:
            running.java.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        _running = None
        with contextlib.suppress(Py4JError, OSError):
            running.context.stop()
        running.stop()  # again: PySpark's part of it that is left
        return True


def note_launch(archive: Path, asked: Sequence[str]) -> None:
    """Notes next to an archive how Java was started, so that it can be started the same way (`java_launch`).

    Args:
        asked: the options that were passed in addition to the defaults.
    """
    if _running is not None and _running.java is not None:
        ours = driver_options(_running.temporary, None)
        java_launch.note(archive, _running.context, [*ours, *asked])


class SessionPool:
    """Sessions for the connections of a profile, each used by a single connection at a time. Thread-safe."""

    def __init__(self, settings: SessionSettings) -> None:
        self._settings = settings

    def acquire(self) -> SparkSession:
        """Returns a session without another's temporary views, functions or settings; raises as `open_session` does."""
        return open_session(self._settings)

    def has_lost(self, session: SparkSession) -> bool:
        """Returns whether the Spark of a session has ended and this process has forgotten it; a server tells itself."""
        is_embedded = self._settings.remote is None and self._settings.keep_alive is None
        return is_embedded and spark_seams.active_context() is not session.sparkContext

    def release(self, session: SparkSession) -> None:
        """Releases a session that is not used again; on a server, closes it."""
        if self._settings.remote is not None or self._settings.keep_alive is not None:
            with contextlib.suppress(PySparkException):  # the server ends idle sessions by itself
                session.stop()


@dataclass(frozen=True)
class _Running:
    """The Spark that this module has started.

    Attributes:
        java: its process, unless the program had started Java before.
        temporary: the folder of its log and of files that it would otherwise leave in the working directory.
        local: the folders in which Spark keeps rows for its own use, such as shuffles and spills.
    """

    settings: SessionSettings
    context: SparkContext
    java: subprocess.Popen[bytes] | None
    temporary: str
    local: tuple[str, ...] = ()

    def stop(self) -> None:
        self.context.stop()
        if self.java is not None:
            _end_java(self.java)
        for folder in (self.temporary, *self.local):
            shutil.rmtree(folder, ignore_errors=True)


_lock = threading.Lock()
_running: _Running | None = None


def _silence_query_contexts() -> None:
    """Keeps Spark from printing a page of JSON for every failed statement: the error itself describes the failure."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


# An embedded Spark


def _embedded(settings: SessionSettings) -> SparkSession:
    global _running
    context = spark_seams.active_context()
    if context is not None:
        _check_running(context, settings)
        _reach_storage(context, settings)
        return SparkSession(context)
    _running = _start(settings) if _LOCAL_MASTER.fullmatch(settings.master) else _on_cluster(settings)
    return SparkSession(_running.context)


def _on_cluster(settings: SessionSettings) -> _Running:
    cluster.check_master(settings.master)
    running = _start(settings)
    try:
        cluster.check_executors(SparkSession(running.context), settings.master)
    except SparkUnavailableError:
        running.stop()
        raise
    except (PySparkException, Py4JError) as error:  # the application ended meanwhile
        refused = cluster.not_taken(settings.master, error)
        running.stop()
        raise refused from None  # the error's text is in the Java that has ended
    return running


def _check_running(context: SparkContext, settings: SessionSettings) -> None:
    started_here = _running is not None and _running.context is context
    if started_here and context.master != settings.master:
        raise InvalidSettingError(
            f"this process already runs Spark on {context.master}, so it cannot run it on {settings.master} as well",
            remedy="Use one `master` in a process",
        )


def _start(settings: SessionSettings) -> _Running:
    java = find_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    folder = local_spark.make()
    local = _local_folders(settings, folder)
    conf = _launch_conf(settings, folder, driver_options(folder, _archive(java))) | local_spark.local_conf(local)
    log = Path(folder, "spark.log")
    started = None
    try:
        if spark_seams.gateway() is None:
            _logger.debug("Java is started")
            with local_spark.local_environment(conf):
                started = _launch(java, settings, conf, log)
            _logger.debug("Java answers")
        context = SparkContext(conf=_spark_conf(conf), gateway=started)
        if _LOCAL_MASTER.fullmatch(settings.master):
            local_spark.hide_file_name(context)
            local_spark.remove_hadoop_defaults(context)
        _reach_storage(context, settings)
        _logger.debug("Spark runs")
        return _Running(settings, context, None if started is None else started.proc, folder, local)
    except (PySparkException, Py4JError) as error:
        failure = _did_not_start(settings.master, error, log)
        if started is not None:
            _end_java(started.proc)
        if _UNRESOLVED in str(failure.details["log"]):
            raise not_brought(settings.storage, spark_home(), "the download failed") from error
        raise failure from error


_UNRESOLVED = "unresolved dependency"


def _reach_storage(context: SparkContext, settings: SessionSettings) -> None:
    """Gives Spark the settings of object stores.

    Raises:
        SparkUnavailableError: if it lacks the jars.
    """
    if settings.storage.services:
        if lacking := jars.lacking(context, settings.storage):
            raise not_brought(replace(settings.storage, services=tuple(lacking)), spark_home(), "they are missing")
        jars.apply(context, settings.storage)


def _archive(java: Java) -> Path | None:
    """Returns the class-data archive to start from, if it exists."""
    path = archive_path(java)
    return path if path is not None and path.is_file() else None


def _launch(java: Java, settings: SessionSettings, conf: Mapping[str, str], log: Path) -> Any:
    """Starts Java by the command line that is noted next to the archive, or else by Spark's scripts.

    Java outlives this process by a moment. Java gets this process's output only if the user asked for Spark's log; with
    it, a reader of the output waits until Java ends, too.
    """
    archive = _archive(java)
    line = None if archive is None else java_launch.noted(archive)
    told = java_launch.without_secrets(conf)
    with log.open("wb") as output:
        kept = None if _shows_log(settings) else output
        started = None
        if java.is_packaged and line is None:
            line = java_launch.line_of_package(java)
        if line is not None and _LOCAL_MASTER.fullmatch(settings.master) and not java_launch.needs_scripts(conf):
            started = java_launch.start(java, line, told, kept)
        if started is None and java.is_packaged:
            raise SparkUnavailableError(
                f"Spark did not start on the Java {java}, which starts Spark only on a local master and without "
                "settings of Spark's scripts",
                remedy="Install Java 17 or later, and set JAVA_HOME to it",
                details={"log": str(log)},
            )
        if started is None:
            popen = {} if kept is None else {"stdout": kept, "stderr": kept}
            started = spark_seams.launch_java(_spark_conf(told), popen)
        return started


def _spark_conf(conf: Mapping[str, str]) -> SparkConf:
    return SparkConf(loadDefaults=False).setAll(list(conf.items()))


def _launch_conf(settings: SessionSettings, folder: str, options: list[str]) -> dict[str, str]:
    """Returns all settings that Spark is started with."""
    user = _as_strings(settings.spark_conf)
    user_options = user.pop("spark.driver.extraJavaOptions", None)
    return {
        "spark.app.name": "dbt-silt",
        "spark.master": settings.master,
        "spark.driver.extraJavaOptions": " ".join([*options, *([user_options] if user_options else [])]),
        "spark.driver.memory": default_memory(),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": Path(folder, "spark-warehouse").as_uri(),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **_local_conf(settings.master),
        **_SESSION_DEFAULTS,
        **session_settings.required(),
        **user,
        **(jars.redaction(user) if settings.storage.services else {}),
        **jars.settings(settings.storage, user, spark_home()),
    }


_SESSION_DEFAULTS: Mapping[str, str] = {"spark.sql.execution.arrow.pyspark.enabled": "true"}

_LOCAL_MASTER = re.compile(r"local(?:\[(?P<cores>\d+|\*)(?:\s*,\s*\d+)?\])?")
_PARTITIONS_PER_CORE = 8


def _local_conf(master: str) -> dict[str, str]:
    """Returns the settings that are right only if driver and executors are the same process on this machine."""
    match = _LOCAL_MASTER.fullmatch(master)
    if match is None:
        return {}
    named = match["cores"] or "1"
    cores = (os.cpu_count() or 1) if named == "*" else int(named)
    return {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        # Spark then creates a secret in Java; without it, its block manager would give cached rows to other users.
        "spark.authenticate": "true",
        # Only this setting tells Hadoop the user's umask; without it, members of a group cannot write the group's
        # files.
        "spark.hadoop.fs.permissions.umask-mode": f"{umask():03o}",
        "spark.sql.shuffle.partitions": str(min(200, max(16, _PARTITIONS_PER_CORE * cores))),
    }


def _local_folders(settings: SessionSettings, folder: str) -> tuple[str, ...]:
    """Creates the folders for the rows that a Spark on this machine writes for its own use; no folders for a cluster.

    Raises:
        SparkUnavailableError: if a folder cannot be created in the folder that the user names.
    """
    if _LOCAL_MASTER.fullmatch(settings.master) is None:
        return ()
    named = os.environ.get(local_spark.LOCAL_VARIABLE) or settings.spark_conf.get(local_spark.LOCAL)
    try:
        return (folder,) if named is None else local_spark.make_below(str(named))
    except OSError as error:
        raise SparkUnavailableError(
            f"no folder can be created in {named}, the value of {local_spark.LOCAL} ({error.strerror})",
            remedy="Set it in `spark_conf` to a folder that you can write to",
        ) from error


def _shows_log(settings: SessionSettings) -> bool:
    """Returns whether the user asked for logs: otherwise Java writes to a file, which explains a failed start."""
    return "spark.log.level" in settings.spark_conf


_END_SECONDS = 600  # a class-data archive, which Java writes at its end, takes time on a busy machine


def _end_java(process: subprocess.Popen[bytes]) -> None:
    """Ends Java by closing its standard input, and resets the gateway, which pyspark would otherwise use again."""
    gateway = spark_seams.gateway()
    spark_seams.forget_java()
    if gateway is not None:
        gateway.shutdown()
    if process.stdin is not None:
        process.stdin.close()
    process.wait(timeout=_END_SECONDS)


_THROWN = re.compile(r'Exception in thread "[^"]*" [\w.$]+: ')
_NOISE = ("WARNING", "NOTE", "Using ", "SLF4J", "Picked up")


def _did_not_start(master: str, error: Exception, log: Path) -> SparkUnavailableError:
    said = log.read_text(errors="replace").splitlines() if log.exists() else []
    reasons = [line.strip() for line in said if line.strip() and not line.startswith(_NOISE)]
    if isinstance(error, Py4JJavaError):
        reasons.insert(0, str(error.java_exception.getMessage()))
    reason = _THROWN.sub("", reasons[0] if reasons else str(error).strip())
    return SparkUnavailableError(
        f"Spark did not start on {master} ({reason})",
        remedy="Check `master` and `spark_conf` in the profile, and that the machine has free memory",
        details={"log": "\n".join(said)},
    )


# A Spark Connect server


_CONNECT_PACKAGES = ("grpc", "google.rpc", "grpc_status", "pandas")


_Found = TypeVar("_Found")


def _of_kept(
    find: Callable[[str, Mapping[str, str], float, SparkStorage], _Found],
    settings: SessionSettings,
    keep_alive: timedelta,
) -> _Found:
    """Finds the kept Spark, or a session of it, which needs no settings, because its Spark was started with them."""
    _check_connect_packages()
    conf = _as_strings(settings.spark_conf)
    return find(settings.master, conf, keep_alive.total_seconds(), settings.storage)


def _check_connect_packages() -> None:
    missing = [package for package in _CONNECT_PACKAGES if not _is_installed(package)]
    if missing:
        raise SparkUnavailableError(
            f"Spark Connect needs Python packages that are not installed ({', '.join(missing)})",
            remedy="Run `pip install 'dbt-silt[connect]'`",
        )


def _connect(remote: str) -> SparkSession:
    _check_address(remote)
    _check_connect_packages()
    try:
        connect_client.check_reachable(remote)
        session = cast("SparkSession", connect_client.connect_to(remote))
        session.version  # noqa: B018 -- the first call that reaches the server
    except Exception as error:  # the channel's errors belong to packages that may not be installed
        raise _not_reached(remote, error) from error
    return session


def _check_address(remote: str) -> None:
    if not shown_settings.is_remote(remote):
        raise InvalidSettingError(
            f"`remote` is {shown_settings.remote(remote)}, but the URL of a Spark Connect server is sc://host:port, or "
            "sc://host:port/;name=value;name=value",
            remedy="Correct `remote` in the profile",
        )


def _not_reached(remote: str, error: Exception) -> SparkUnavailableError:
    said = shown_settings.without_secrets(f"{type(error).__name__}: {error}", remote)
    return SparkUnavailableError(
        f"the Spark Connect server {shown_settings.remote(remote)} cannot be reached ({said})",
        remedy="Check `remote` in the profile, and that the server runs",
    )


def _is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # its parent package is missing
        return False


# Settings of a session


def _apply(session: SparkSession, settings: SessionSettings) -> None:
    """Gives a new session its settings, regardless of the settings that Spark was started with."""
    local = _local_conf(settings.master) if settings.remote is None else {}
    defaults = {key: value for key, value in {**local, **_SESSION_DEFAULTS}.items() if session.conf.isModifiable(key)}
    user = _as_strings(settings.spark_conf)
    if jars.ACCELERATED in user:
        accelerator.check_running(session.conf, user)
    elif _running is not None and jars.ACCELERATED in _running.settings.spark_conf:
        user[jars.ACCELERATED] = "false"
    for key, value in {**defaults, **session_settings.required(), **user}.items():
        if session.conf.isModifiable(key):
            session.conf.set(key, value)
        else:
            _check_fixed(session, key, value)


def _as_strings(conf: Mapping[str, object]) -> dict[str, str]:
    """Settings in Spark's notation: YAML's `true` is a bool in Python."""
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in conf.items()}


def _check_fixed(session: SparkSession, key: str, value: str) -> None:
    """Rejects a setting that differs from the running Spark's, which cannot change it."""
    current = session.conf.get(key, None)
    appended = key.endswith("JavaOptions") and value in (current or "")
    is_narrower = key == local_spark.LOCAL and local_spark.is_below(current or "", value)
    if current != value and not appended and not is_narrower:
        shown = {"value": setting(key, value), "current": None if current is None else setting(key, current)}
        raise InvalidSettingError(
            f"`spark_conf` sets {key} to {shown['value']}, but the running Spark has {shown['current']}",
            remedy="Set it when you start that Spark, or remove it from `spark_conf`",
            details={"setting": key, **shown},
        )
