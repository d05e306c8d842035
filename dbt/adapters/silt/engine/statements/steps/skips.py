"""Checks transaction identifiers, and logs units of work that are skipped because a table already contains them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from numbers import Integral
from typing import Final

from dbt.adapters.silt.engine.catalog.names import RelationKind
from dbt.adapters.silt.engine.commands.target import Outcome
from dbt.adapters.silt.engine.kernel.errors import InvalidArgumentError, InvalidSettingError
from dbt.adapters.silt.engine.kernel.log.builds import Build, facts_hash
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.transaction.branch_log import branch_of, note_reads
from dbt.adapters.silt.engine.kernel.transaction.changes import ENGINE_INFO, ReadSet
from dbt.adapters.silt.engine.reuse.decision import Reused
from dbt.adapters.silt.engine.reuse.present import decide_now, last_build, log_of
from dbt.adapters.silt.engine.reuse.settings import session_settings
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.tokens import normal_text
from dbt.adapters.silt.engine.statements.steps.context import Context

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


SETTING: Final = "silt.reuse"
"""The session's setting; `unchanged` skips such a statement."""

_OWNER: Final = "sql"
_VALUES: Final = ("unchanged", "never")
_OPERATION: Final = "CREATE OR REPLACE TABLE AS SELECT"


def session_build(
    context: Context, statement: ast.CreateTable, before: Iterable[ast.Statement], at_ms: int
) -> Build | None:
    """Returns the build that a statement is; empty if the session does not ask for reuse.

    Args:
        before: the statements that have changed the session.
        at_ms: the present time, in milliseconds since 1970-01-01 UTC.

    Raises:
        InvalidSettingError: if the session's setting has another value than `unchanged` and `never`.
    """
    if statement.query is None:
        return None
    value = context.spark.conf.get(SETTING, None)
    if value is not None and value not in _VALUES:
        raise InvalidSettingError(f"`{SETTING}` cannot be `{value}`", remedy=f"Set it to {' or '.join(_VALUES)}")
    if value != _VALUES[0] or statement.mode is not ast.CreateMode.CREATE_OR_REPLACE:
        return None
    here, spark = context.namespace, context.spark
    settings = sorted(session_settings(spark.conf).items())
    environment = facts_hash([ENGINE_INFO, spark.version, here.database, here.schema, settings])
    code = facts_hash(normal_text(statement.text))
    names = not all(isinstance(each, ast.SetSetting | ast.ResetSetting | ast.Use) for each in before)
    unknown = ("a statement before it changed the session's variables or functions",) if names else ()
    return Build(_OWNER, code, environment, at_ms, unknown=unknown)


def reused(context: Context, statement: ast.Statement) -> Outcome | None:
    """Returns the outcome of a session's build whose table holds the rows already; empty if it must be run.

    A transaction that skips a build has read the build's inputs and its table.
    """
    build, txn = context.settings.build, context.settings.txn or context.transaction.txn
    if build is None or build.owner != _OWNER or txn is not None:
        return None
    assert statement.changed_table is not None
    name = None if ast.is_path(statement.changed_table) else context.namespace.writable(statement.changed_table)
    entry = None if name is None else context.catalog.find(name)
    if entry is None or entry.kind is not RelationKind.TABLE:
        return None
    log = context.catalog.table(entry.name)
    decision = decide_now(context.catalog, log, build, statement.text, context.resolver.allowed.named_files)
    if not isinstance(decision, Reused):
        return None
    _note_reads(context, log)
    return Outcome(_OPERATION, log.name, decision.version, rows_inserted=0, attempts=0, skipped=True)


def _note_reads(context: Context, log: DeltaLog) -> None:
    last = None if branch_of(log) is None else last_build(log, _OWNER)
    for name in (log.name, *last.facts.tables) if last is not None else ():
        note_reads(log_of(context.catalog, name), ReadSet(whole_table=True))
