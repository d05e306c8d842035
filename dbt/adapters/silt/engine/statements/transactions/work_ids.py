"""Checks the identifiers of work, and logs units of work that are skipped because a table already contains them."""

from __future__ import annotations

import logging
import threading
from numbers import Integral
from typing import Final

from dbt.adapters.silt.engine.commands.target import Outcome
from dbt.adapters.silt.engine.kernel.errors import InvalidArgumentError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog

_logger = logging.getLogger(__name__)

_GREATEST_VERSION: Final = 2**63 - 1
_REMEDY: Final = "Pass (app id, version): a string that names the work, and a whole number that increases with it"

_warned: set[tuple[str, str]] = set()
"""The pairs of a table, by location, and an application id for which the warning was already logged."""

_lock = threading.Lock()


def checked(txn: tuple[str, int] | None) -> tuple[str, int] | None:
    """Returns application id and version as a commit can record them.

    Raises:
        InvalidArgumentError: if a commit cannot record them.
    """
    if txn is None:
        return None
    if not isinstance(txn, tuple | list) or len(txn) != 2:
        raise InvalidArgumentError(f"`txn` cannot be {txn!r}: it has two parts", remedy=_REMEDY)
    app_id, version = txn
    if not isinstance(app_id, str) or not app_id.strip():
        raise InvalidArgumentError(f"the app id of `txn` cannot be {app_id!r}", remedy=_REMEDY)
    if isinstance(version, bool) or not isinstance(version, Integral) or not 0 <= version <= _GREATEST_VERSION:
        raise InvalidArgumentError(f"the version of `txn` cannot be {version!r}", remedy=_REMEDY)
    return app_id, int(version)


def log_skip(log: DeltaLog, txn: tuple[str, int], done: Outcome) -> None:
    """Logs that work was skipped.

    An application that repeats its latest work repeats the latest version. A lower version may mean that the
    application has restarted its count, and then all its writes would be skipped: the first lower version is warned
    about.
    """
    app_id, version = txn
    _logger.info(
        "skipped: version %s of the app id %s is already applied to %s%s",
        version,
        app_id,
        done.table,
        "" if done.version is None else f", by v{done.version}",
    )
    if done.recorded is None or version >= done.recorded or not _first_time(log, app_id):
        return
    _logger.warning(
        "%s holds version %s of the app id %s, and version %s came after it: this and every version up to %s is "
        "skipped, none of their rows is written. If it is new work, such as a stream with a new checkpoint, give it an "
        "app id of its own; if it is a rerun, continue from the checkpoint that belongs to the app id",
        done.table,
        done.recorded,
        app_id,
        version,
        done.recorded,
    )


def note_applied(log: DeltaLog, txn: tuple[str, int]) -> None:
    """Notes that the application has written new work: a later lower version is worth another warning."""
    with _lock:
        _warned.discard((log.store.root, txn[0]))


def _first_time(log: DeltaLog, app_id: str) -> bool:
    key = (log.store.root, app_id)
    with _lock:
        is_first = key not in _warned
        _warned.add(key)
    return is_first
