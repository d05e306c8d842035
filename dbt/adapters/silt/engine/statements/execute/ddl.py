"""Statements that make, change and drop schemas and views, that rename, and that set the session."""

from __future__ import annotations

from dataclasses import replace

from dbt.adapters.silt.engine.catalog.documents import View
from dbt.adapters.silt.engine.catalog.names import RelationName
from dbt.adapters.silt.engine.commands.spark import required_settings
from dbt.adapters.silt.engine.kernel.errors import (
    InvalidStatementError,
    RelationExistsError,
    RelationNotFoundError,
    SchemaNotFoundError,
    UnsupportedStatementError,
)
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.ast import CreateMode, ObjectKind, ViewScope
from dbt.adapters.silt.engine.sql.query.references import table_references
from dbt.adapters.silt.engine.statements.execute.context import Context, Result
from dbt.adapters.silt.engine.statements.execute.foreign import pass_to_spark, pass_with_query
from dbt.adapters.silt.engine.statements.resolve.namespace import TemporaryView

_NOTHING = Result()


def create_schema(context: Context, statement: ast.CreateSchema) -> Result:
    """CREATE SCHEMA in one of our databases."""
    place = _schema_place(context, statement.name)
    if place is None:
        return pass_to_spark(context, statement)
    if statement.location is not None:
        raise UnsupportedStatementError(
            "a schema's place is its folder in the warehouse",
            table=".".join(place),
            remedy="Leave LOCATION out, or attach another warehouse as a database",
        )
    context.catalog.create_schema(*place, if_not_exists=statement.mode is CreateMode.CREATE_IF_NOT_EXISTS)
    return _NOTHING


def drop_schema(context: Context, statement: ast.DropSchema) -> Result:
    """DROP SCHEMA of ours; one that neither we nor Spark have is an error of ours."""
    place = _schema_place(context, statement.name)
    if place is None or (not context.catalog.has_schema(*place) and _is_foreign_schema(context, statement.name)):
        return pass_to_spark(context, statement)
    context.catalog.drop_schema(*place, cascade=statement.cascade, if_exists=statement.if_exists)
    return _NOTHING


def create_view(context: Context, statement: ast.CreateView) -> Result:
    """CREATE VIEW: the query is kept as text, and expanded at each use."""
    if statement.scope is not ViewScope.PERSISTENT:
        return _create_temporary_view(context, statement)
    name = context.namespace.writable(statement.name)
    if name is None:
        return pass_with_query(context, statement, statement.query)
    if_absent = statement.mode is CreateMode.CREATE_IF_NOT_EXISTS
    if if_absent and context.catalog.find(name) is not None:
        return _NOTHING
    _check_view_query(context, name, statement)
    try:
        context.catalog.put_view(
            _view(context, name, statement),
            replace=statement.mode is CreateMode.CREATE_OR_REPLACE,
            replace_table=context.settings.replace_tables,
        )
    except RelationExistsError:
        if not if_absent:
            raise
    return _NOTHING


def alter_view_query(context: Context, statement: ast.AlterViewQuery) -> Result:
    """ALTER VIEW ... AS."""
    name = context.namespace.writable(statement.name)
    if name is None:
        return pass_with_query(context, statement, statement.query)
    view = context.catalog.view(name)
    _columns_of(context, name, statement.query)
    changed = replace(
        view,
        text=statement.query,
        columns=(),
        current_database=context.namespace.database,
        current_schema=context.namespace.schema,
    )
    context.catalog.put_view(changed, replace=True)
    return _NOTHING


def drop_view(context: Context, statement: ast.DropView) -> Result:
    """DROP VIEW: a temporary one of that name first."""
    if len(statement.name) == 1 and context.namespace.temporary.pop(statement.name[0].lower(), None) is not None:
        return _NOTHING
    name = context.namespace.name_in_warehouse(statement.name)
    if name is None or context.namespace.is_temporary(statement.name):
        return pass_to_spark(context, statement)
    context.catalog.drop_view(name, if_exists=statement.if_exists)
    return _NOTHING


def drop_table(context: Context, statement: ast.DropTable) -> Result:
    """DROP TABLE: the log ends, the folder goes."""
    if ast.is_path(statement.table):
        raise UnsupportedStatementError(
            "a table that is named by its path cannot be dropped",
            table=statement.table[1],
            remedy="Delete its folder when nothing reads it",
        )
    name = context.namespace.name_in_warehouse(statement.table)
    if name is None:
        return pass_to_spark(context, statement)
    context.catalog.drop_table(name, if_exists=statement.if_exists)
    return _NOTHING


def rename(context: Context, statement: ast.Rename) -> Result:
    """ALTER TABLE | VIEW ... RENAME TO; a new name without a schema stays in the old one's."""
    old = context.namespace.name_in_warehouse(statement.name)
    if old is None:
        return pass_to_spark(context, statement)
    new = statement.new_name
    target = old.sibling(new[0]) if len(new) == 1 else context.namespace.writable(new)
    if target is None:
        raise UnsupportedStatementError(
            f"it cannot be renamed to `{'.'.join(new)}`, which is not in a warehouse of ours", table=str(old)
        )
    entry = context.catalog.find(old)
    if entry is None or entry.kind.value != statement.kind.value:
        raise RelationNotFoundError(f"there is no such {statement.kind.value}", table=str(old))
    context.catalog.rename(old, target)
    return _NOTHING


def use(context: Context, statement: ast.Use) -> Result:
    """USE: where names without a schema are looked up from now on."""
    name, namespace = statement.name, context.namespace
    if len(name) == 1 and statement.kind is not ObjectKind.DATABASE and namespace.is_schema(name[0]):
        namespace.schema = name[0].lower()
    elif len(name) == 1 and statement.kind is not ObjectKind.SCHEMA and namespace.is_database(name[0]):
        namespace.database = name[0].lower()
    elif len(name) == 2 and context.catalog.has_schema(*name):
        namespace.database, namespace.schema = name[0].lower(), name[1].lower()
    else:
        raise SchemaNotFoundError(
            f"`{'.'.join(name)}` is no schema or database of ours",
            remedy="Create the schema first; name tables of Spark's own with their schema instead of USE",
        )
    return _NOTHING


def set_setting(context: Context, statement: ast.SetSetting) -> Result:
    """SET: what correctness rests on cannot be set otherwise."""
    if statement.key is not None and statement.value is not None:
        required_settings.check({statement.key: statement.value})
    return pass_to_spark(context, statement)


def reset_setting(context: Context, statement: ast.ResetSetting) -> Result:
    """RESET: what correctness rests on is set again at once."""
    result = pass_to_spark(context, statement)
    required_settings.configure(context.spark)
    return result


def _create_temporary_view(context: Context, statement: ast.CreateView) -> Result:
    """One that reads something of ours is kept here as text; any other is Spark's."""
    resolved = context.resolver.query(statement.query)
    if resolved.texts[0] == statement.query:
        if len(statement.name) == 1:
            context.namespace.temporary.pop(statement.name[0].lower(), None)
        return pass_to_spark(context, statement)
    if statement.scope is ViewScope.GLOBAL_TEMPORARY or len(statement.name) != 1:
        raise UnsupportedStatementError(
            "a global temporary view cannot read tables of a warehouse",
            table=".".join(statement.name),
            remedy="Use `create temporary view` or `create view`",
        )
    if statement.mode is CreateMode.CREATE and context.namespace.is_temporary(statement.name):
        raise RelationExistsError("there is a temporary view of that name", table=statement.name[0])
    columns = tuple(column.name for column in statement.columns)
    _check_column_count(statement.name[0], columns, context.spark.sql(resolved.texts[0]).columns)
    context.spark.catalog.dropTempView(statement.name[0])
    context.namespace.temporary[statement.name[0].lower()] = TemporaryView(statement.query, columns)
    return _NOTHING


def _check_view_query(context: Context, name: RelationName, statement: ast.CreateView) -> None:
    for reference in table_references(statement.query):
        if reference.files is not None:
            continue
        if context.namespace.is_temporary(reference.parts):
            raise InvalidStatementError(
                f"a view that stays cannot read the temporary view `{reference.parts[0]}`",
                table=str(name),
                remedy="Create a temporary view, or a table",
            )
    columns = tuple(column.name for column in statement.columns)
    _check_column_count(str(name), columns, _columns_of(context, name, statement.query))


def _columns_of(context: Context, name: RelationName, query: str) -> list[str]:
    """The columns of the query that the view is to have, which Spark can run and which does not read the view."""
    return context.frame(context.resolver.query(query, name)).columns


def _check_column_count(name: str, columns: tuple[str, ...], found: list[str]) -> None:
    if columns and len(columns) != len(found):
        raise InvalidStatementError(
            f"the view names {len(columns)} columns and its query gives {len(found)}", table=name
        )


def _view(context: Context, name: RelationName, statement: ast.CreateView) -> View:
    return View(
        name=name,
        text=statement.query,
        columns=statement.columns,
        comment=statement.comment,
        properties=statement.properties,
        current_database=context.namespace.database,
        current_schema=context.namespace.schema,
    )


def _schema_place(context: Context, name: ast.Name) -> tuple[str, str] | None:
    """Database and schema, where the database is ours; a schema alone is in the current one."""
    if len(name) == 1:
        return context.namespace.database, name[0]
    if len(name) == 2 and context.namespace.is_database(name[0]):
        return name[0], name[1]
    context.namespace.check_database(name[0])
    return None


def _is_foreign_schema(context: Context, name: ast.Name) -> bool:
    return len(name) == 1 and context.namespace.is_foreign_schema(name[0])
