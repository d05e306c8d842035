"""Skips CREATE OR REPLACE TABLE ... AS if the table holds the rows already and the session asks for that."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dbt.adapters.silt.engine.catalog.relations import RelationKind
from dbt.adapters.silt.engine.commands.target import Outcome
from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError
from dbt.adapters.silt.engine.kernel.log.builds import Build, facts_hash
from dbt.adapters.silt.engine.kernel.transaction.changes import ENGINE_INFO
from dbt.adapters.silt.engine.reuse.decision import Reused
from dbt.adapters.silt.engine.reuse.present import decide_now
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.tokens import normal_text
from dbt.adapters.silt.engine.statements.steps.context import Context

SETTING: Final = "silt.reuse"
"""The session's setting; `unchanged` skips such a statement."""

_OWNER: Final = "sql"
_VALUES: Final = ("unchanged", "never")
_OPERATION: Final = "CREATE OR REPLACE TABLE AS SELECT"
_OF_SPARK: Final = "spark.sql."
_OF_THE_MACHINE: Final = ("spark.sql.session.timeZone", "spark.sql.ansi.enabled")
"""The settings whose defaults depend on the machine that runs Spark."""


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
    given = {name: value for name, value in spark.conf.getAll.items() if name.startswith(_OF_SPARK)}
    settings = sorted((given | {name: spark.conf.get(name, None) for name in _OF_THE_MACHINE}).items())
    environment = facts_hash([ENGINE_INFO, spark.version, here.database, here.schema, settings])
    code = facts_hash(normal_text(statement.text))
    names = not all(isinstance(each, ast.SetSetting | ast.ResetSetting | ast.Use) for each in before)
    unknown = ("a statement before it changed the session's variables or functions",) if names else ()
    return Build(_OWNER, code, environment, at_ms, unknown=unknown)


def reused(context: Context, statement: ast.Statement, build: Build) -> Outcome | None:
    """Returns the outcome of a statement whose table holds the rows already; empty if it must be run."""
    assert statement.changed_table is not None
    name = None if ast.is_path(statement.changed_table) else context.namespace.writable(statement.changed_table)
    entry = None if name is None else context.catalog.find(name)
    if entry is None or entry.kind is not RelationKind.TABLE:
        return None
    log = context.catalog.table(entry.name)
    decision = decide_now(context.catalog, log, build, statement.text)
    if not isinstance(decision, Reused):
        return None
    return Outcome(_OPERATION, log.name, decision.version, rows_inserted=0, attempts=0, skipped=True)
