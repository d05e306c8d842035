"""Runs CREATE and DROP SCHEMA, and resolves the names of schemas."""

from __future__ import annotations

from dbt.adapters.silt.engine.kernel.errors import (
    SchemaNotFoundError,
    UnsupportedStatementError,
)
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.ast import CreateMode, Name
from dbt.adapters.silt.engine.statements.steps.context import Context, Result
from dbt.adapters.silt.engine.statements.steps.pass_to_spark import pass_to_spark

_NOTHING = Result()


def create_schema(context: Context, statement: ast.CreateSchema) -> Result:
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


def drop_schema(context: Context, statement: ast.DropSchema) -> Result:
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
        raise SchemaNotFoundError(f"there is no schema `{name[1]}` in database `{name[0]}`")
    return name[0].lower(), name[1].lower()
