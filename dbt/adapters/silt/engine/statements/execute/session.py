"""Runs statements about a session: CREATE and DROP SCHEMA, USE, SET, RESET, BEGIN, COMMIT and ROLLBACK."""

from __future__ import annotations

from dbt.adapters.silt.engine.commands.spark import session_settings
from dbt.adapters.silt.engine.kernel.errors import SchemaNotFoundError, UnsupportedStatementError
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.ast import CreateMode, Name, ObjectKind
from dbt.adapters.silt.engine.statements.steps.context import Context, Result, Routes, pass_to_spark
from dbt.adapters.silt.engine.statements.transactions.session_transaction import BRANCH_SETTING

_NOTHING = Result()
_VERSIONS = "table string, version bigint"


def _use(context: Context, statement: ast.Use) -> Result:
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


def _set_setting(context: Context, statement: ast.SetSetting) -> Result:
    """Runs SET; a setting that correctness depends on cannot be changed."""
    if statement.key is not None and statement.value is not None:
        session_settings.check({statement.key: statement.value})
    if statement.key == BRANCH_SETTING and statement.value is not None:
        context.transaction.switch(context.namespace.database, statement.value.strip("'\""))
    return pass_to_spark(context, statement)


def _reset_setting(context: Context, statement: ast.ResetSetting) -> Result:
    """Runs RESET; the settings that correctness depends on are set again at once."""
    if statement.key in (None, BRANCH_SETTING) and context.transaction.is_joined:
        context.transaction.switch(context.namespace.database, "")
    result = pass_to_spark(context, statement)
    session_settings.configure(context.spark)
    return result


def _begin(context: Context, statement: ast.Begin) -> Result:  # noqa: ARG001
    """Runs BEGIN: the following statements are published together by COMMIT."""
    context.transaction.begin(context.namespace.database)
    return _NOTHING


def _commit(context: Context, statement: ast.Commit) -> Result:  # noqa: ARG001
    """Runs COMMIT, which returns the new version of each changed table."""
    versions = context.transaction.commit()
    return context.rows(sorted(versions.items()), _VERSIONS)


def _rollback(context: Context, statement: ast.Rollback) -> Result:  # noqa: ARG001
    """Runs ROLLBACK, which drops the changes of the transaction."""
    context.transaction.rollback()
    return _NOTHING


def _create_schema(context: Context, statement: ast.CreateSchema) -> Result:
    """Runs CREATE SCHEMA in a database of the catalog."""
    schema = _schema_name(context, statement.name)
    if schema is None:
        return pass_to_spark(context, statement)
    if statement.location is not None:
        raise UnsupportedStatementError(
            "a schema's location is its folder in the warehouse",
            table=".".join(schema),
            remedy="Leave LOCATION out, or attach another warehouse as a database",
        )
    context.catalog.create_schema(*schema, if_not_exists=statement.mode is CreateMode.CREATE_IF_NOT_EXISTS)
    return _NOTHING


def _drop_schema(context: Context, statement: ast.DropSchema) -> Result:
    """Runs DROP SCHEMA; this engine raises the error for a schema that neither the catalog nor Spark has."""
    schema = _schema_name(context, statement.name)
    if schema is None or (not context.catalog.has_schema(*schema) and _is_spark_schema(context, statement.name)):
        return pass_to_spark(context, statement)
    context.catalog.drop_schema(*schema, cascade=statement.cascade, if_exists=statement.if_exists)
    return _NOTHING


def _schema_name(context: Context, name: ast.Name) -> tuple[str, str] | None:
    """Returns database and schema, or None if the catalog lacks the database. Unqualified: the current database."""
    if len(name) == 1:
        return context.namespace.database, name[0]
    if len(name) == 2 and context.namespace.is_database(name[0]):
        return name[0], name[1]
    context.namespace.check_database(name[0])
    return None


def _is_spark_schema(context: Context, name: ast.Name) -> bool:
    return len(name) == 1 and context.namespace.is_spark_schema(name[0])


def named_schema(context: Context, name: Name | None) -> tuple[str, str] | None:
    """Returns database and schema if the catalog has the schema, or None if it lacks the database.

    Raises:
        SchemaNotFoundError: if the catalog has the database, but no such schema in it.
    """
    namespace = context.namespace
    if name is None:
        return namespace.database, namespace.schema
    if len(name) == 1:
        return (namespace.database, name[0].lower()) if namespace.is_schema(name[0]) else None
    if not namespace.is_database(name[0]):
        return None
    if not context.catalog.has_schema(name[0], name[1]):
        raise SchemaNotFoundError(f"the schema `{name[1]}` does not exist in database `{name[0]}`")
    return name[0].lower(), name[1].lower()


ROUTES: Routes = {
    ast.CreateSchema: _create_schema,
    ast.DropSchema: _drop_schema,
    ast.Use: _use,
    ast.SetSetting: _set_setting,
    ast.ResetSetting: _reset_setting,
    ast.Begin: _begin,
    ast.Commit: _commit,
    ast.Rollback: _rollback,
}
