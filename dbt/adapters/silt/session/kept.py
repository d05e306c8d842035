"""Opens sessions of the kept Spark, which is started if it does not run."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.commands.spark import hadoop_storage, shared_storage
from dbt.adapters.silt.engine.commands.spark.failures import java_process
from dbt.adapters.silt.engine.commands.spark.failures.java_process import End
from dbt.adapters.silt.kept_spark import finding, inherited_environment, passed_over, private_files, starting
from dbt.adapters.silt.kept_spark.finding import Attached
from dbt.adapters.silt.kept_spark.leases import Use
from dbt.adapters.silt.kept_spark.watch import Reason, how_it_ended
from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.session.jars import SparkStorage

if TYPE_CHECKING:
    from dbt.adapters.silt.session import connect_client
else:  # a process may import it before it forks, but must use it only after the fork
    connect_client = lazy_module("dbt.adapters.silt.session.connect_client")

_attached: dict[Path, Attached] = {}
_ends: dict[str, End] = {}
"""How the earlier Sparks of this process ended, by token: a new Spark deletes its folder's record of the last end."""

_lock = threading.Lock()


def session(
    master: str, spark_conf: Mapping[str, str], keep_alive: float, storage: SparkStorage | None = None
) -> SparkSession:
    """Creates a session of the Spark with these settings; the first call attaches this process to it for its lifetime.

    Args:
        keep_alive: the seconds for which Spark is kept after the last process that used it.
        storage: its settings for object stores.

    Raises:
        SparkUnavailableError: if it cannot be started or reached.
    """
    attached = attach(master, spark_conf, keep_alive, storage)
    return cast("SparkSession", connect_client.connect(attached, lambda: _end_of(attached)))


def attach(
    master: str, spark_conf: Mapping[str, str], keep_alive: float, storage: SparkStorage | None = None
) -> Attached:
    """Attaches this process to the Spark with these settings, and imports the client meanwhile; raises as `session`."""
    settings, inherited = _settings(master, spark_conf, storage), inherited_environment.read()
    base = private_files.private_folder(private_files.base_folder())
    folder = base / inherited_environment.name_of(settings, inherited)
    with _lock:
        known = _attached.get(folder)
        if known is not None and known.can_be_used():
            return known
        if known is not None:
            known.wait_for_end()
            _ends[known.record.token] = _how_it_ended(folder)
        threading.Thread(target=lambda: connect_client.connect, name="silt-connect", daemon=True).start()
        use = Use(os.getpid(), _command(), keep_alive, time.time())
        _attached[folder] = finding.attach(folder, use, starting.keeper_of({**settings, "keep_alive": keep_alive}))
        if known is not None:
            known.lease.release()
        if _attached[folder].is_new:
            passed_over.note_parts(folder, settings, inherited)
        java_process.register_end(lambda: _end_of_last(folder))
        shared_storage.trust(_attached[folder].record.application)  # same user, same machine, same mounts
        hadoop_storage.trust(_attached[folder].record.application)  # the keeper gave it the settings
        return _attached[folder]


def why_not_used(
    master: str, spark_conf: Mapping[str, str], storage: SparkStorage | None, *, is_kept: bool
) -> str | None:
    """Returns why a new Spark starts next to a kept Spark of this folder, if such a Spark runs.

    Args:
        is_kept: whether the new Spark is kept, too.
    """
    settings, inherited = _settings(master, spark_conf, storage), inherited_environment.read()
    own = inherited_environment.name_of(settings, inherited)
    return passed_over.reason(private_files.base_folder(), own, settings, inherited, is_kept)


def _settings(master: str, spark_conf: Mapping[str, str], storage: SparkStorage | None) -> dict[str, object]:
    settings: dict[str, object] = {"master": master, "spark_conf": dict(spark_conf)}
    if storage is not None and storage.services:
        settings["storage"] = storage.to_dict()
    return settings


def has_ended() -> bool:
    """Returns whether a Spark that this process is attached to has ended, so that its sessions are lost."""
    return any(not each.can_be_used() for each in tuple(_attached.values()))


os.register_at_fork(after_in_child=_attached.clear)


def _command() -> str:
    """Returns a short form of the command for display, without its arguments, which may be secret."""
    name = Path(sys.argv[0]).name if sys.argv else "python"
    return " ".join([name, *(word for word in sys.argv[1:2] if not word.startswith("-"))])


def _end_of_last(folder: Path) -> End | None:
    """Returns how the Spark that this process last used has ended, or None while it runs."""
    attached = _attached.get(folder)
    return None if attached is None else _end_of(attached)


def _end_of(attached: Attached) -> End | None:
    """Returns how a Spark ended, or None while it runs."""
    if attached.is_alive():
        return None
    return _ends.get(attached.record.token) or _how_it_ended(attached.folder)


def _how_it_ended(folder: Path) -> End:
    reason, code = how_it_ended(folder)
    return End(code, None if reason is None or reason is Reason.DIED else reason.value)
