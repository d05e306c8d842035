"""Skips CREATE OR REPLACE TABLE ... AS, in a session with `silt.reuse = unchanged`, if the table has its rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dbt.adapters.silt.engine.builds.decision import Reused
from dbt.adapters.silt.engine.builds.present import decide_now, last_build, log_of
from dbt.adapters.silt.engine.builds.settings import session_settings
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationKind
from dbt.adapters.silt.engine.commands.target import Outcome
from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError
from dbt.adapters.silt.engine.kernel.log.builds import Build, facts_hash
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.transaction.branch_log import branch_of, note_reads
from dbt.adapters.silt.engine.kernel.transaction.changes import ENGINE_INFO, ReadSet
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.tokens import normal_text
from dbt.adapters.silt.engine.statements.resolve.namespace import Namespace
from dbt.adapters.silt.engine.statements.resolve.resolve import Resolver

SETTING: Final = "silt.reuse"
"""The session's setting; `unchanged` skips such a statement."""

_OWNER: Final = "sql"
_VALUES: Final = ("unchanged", "never")
_OPERATION: Final = "CREATE OR REPLACE TABLE AS SELECT"


def session_build(
    here: Namespace, statement: ast.CreateTable, before: Iterable[ast.Statement], at_ms: int
) -> Build | None:
    """Returns the build that a statement is; None if the session does not ask for reuse.

    Args:
        before: the statements that have changed the session.
        at_ms: the present time, in milliseconds since 1970-01-01 UTC.

    Raises:
        InvalidSettingError: if the session's setting has another value than `unchanged` and `never`.
    """
    if statement.query is None:
        return None
    value = here.spark.conf.get(SETTING, None)
    if value is not None and value not in _VALUES:
        raise InvalidSettingError(f"`{SETTING}` cannot be `{value}`", remedy=f"Set it to {' or '.join(_VALUES)}")
    if value != _VALUES[0] or statement.mode is not ast.CreateMode.CREATE_OR_REPLACE:
        return None
    settings = sorted(session_settings(here.spark.conf).items())
    environment = facts_hash([ENGINE_INFO, here.spark.version, here.database, here.schema, settings])
    code = facts_hash(normal_text(statement.text))
    names = not all(isinstance(each, ast.SetSetting | ast.ResetSetting | ast.Use) for each in before)
    unknown = ("a statement before it changed the session's variables or functions",) if names else ()
    return Build(_OWNER, code, environment, at_ms, unknown=unknown)


def reused(resolver: Resolver, statement: ast.Statement, build: Build) -> Outcome | None:
    """Returns the outcome of a session's build whose table holds the rows already; None if it must be run.

    A transaction that skips a build has read the build's inputs and its table.
    """
    if build.owner != _OWNER:
        return None
    assert statement.changed_table is not None
    here = resolver.namespace
    name = None if ast.is_path(statement.changed_table) else here.writable(statement.changed_table)
    entry = None if name is None else here.catalog.find(name)
    if entry is None or entry.kind is not RelationKind.TABLE:
        return None
    log = here.catalog.table(entry.name)
    decision = decide_now(here.catalog, log, build, statement.text, resolver.allowed.named_files)
    if not isinstance(decision, Reused):
        return None
    _note_reads(here.catalog, log)
    return Outcome(_OPERATION, log.name, decision.version, rows_inserted=0, attempts=0, skipped=True)


def _note_reads(catalog: Catalog, log: DeltaLog) -> None:
    last = None if branch_of(log) is None else last_build(log, _OWNER)
    for name in (log.name, *last.facts.tables) if last is not None else ():
        note_reads(log_of(catalog, name), ReadSet(whole_table=True))
