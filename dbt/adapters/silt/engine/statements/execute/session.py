"""Runs statements that change the state of a session: USE, SET, RESET, BEGIN, COMMIT and ROLLBACK."""

from __future__ import annotations

from dbt.adapters.silt.engine.commands.spark import session_settings
from dbt.adapters.silt.engine.kernel.errors import SchemaNotFoundError
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.ast import ObjectKind
from dbt.adapters.silt.engine.statements.steps.context import Context, Result
from dbt.adapters.silt.engine.statements.steps.pass_to_spark import pass_to_spark
from dbt.adapters.silt.engine.statements.steps.transactions import BRANCH_SETTING

_NOTHING = Result()
_VERSIONS = "table string, version bigint"


def use(context: Context, statement: ast.Use) -> Result:
    """Runs USE, which sets the schema or database in which later names are looked up."""
    name, namespace = statement.name, context.namespace
    if len(name) == 1 and statement.kind is not ObjectKind.DATABASE and namespace.is_schema(name[0]):
        namespace.schema = name[0].lower()
    elif len(name) == 1 and statement.kind is not ObjectKind.SCHEMA and namespace.is_database(name[0]):
        namespace.database = name[0].lower()
    elif len(name) == 2 and context.catalog.has_schema(*name):
        namespace.database, namespace.schema = name[0].lower(), name[1].lower()
    else:
        raise SchemaNotFoundError(
            f"`{'.'.join(name)}` is not a schema or database of the warehouse",
            remedy="Create the schema first; name tables of Spark's own with their schema instead of USE",
        )
    return _NOTHING


def set_setting(context: Context, statement: ast.SetSetting) -> Result:
    """Runs SET; a setting that correctness depends on cannot be changed."""
    if statement.key is not None and statement.value is not None:
        session_settings.check({statement.key: statement.value})
    if statement.key == BRANCH_SETTING and statement.value is not None:
        context.transaction.switch(context.namespace.database, statement.value.strip("'\""))
    return pass_to_spark(context, statement)


def reset_setting(context: Context, statement: ast.ResetSetting) -> Result:
    """Runs RESET; the settings that correctness depends on are set again at once."""
    if statement.key in (None, BRANCH_SETTING) and context.transaction.is_joined:
        context.transaction.switch(context.namespace.database, "")
    result = pass_to_spark(context, statement)
    session_settings.configure(context.spark)
    return result


def begin(context: Context, statement: ast.Begin) -> Result:  # noqa: ARG001
    """Runs BEGIN: the following statements are published together by COMMIT."""
    context.transaction.begin(context.namespace.database)
    return _NOTHING


def commit(context: Context, statement: ast.Commit) -> Result:  # noqa: ARG001
    """Runs COMMIT, which returns the new version of each changed table."""
    versions = context.transaction.commit()
    return context.rows(sorted(versions.items()), _VERSIONS)


def rollback(context: Context, statement: ast.Rollback) -> Result:  # noqa: ARG001
    """Runs ROLLBACK, which drops the changes of the transaction."""
    context.transaction.rollback()
    return _NOTHING
