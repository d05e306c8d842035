"""Runs CREATE, ALTER and DROP VIEW."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dbt.adapters.silt.engine.builds.build_facts import facts_of_query
from dbt.adapters.silt.engine.builds.passed_tests import of_view
from dbt.adapters.silt.engine.catalog.names.documents import View
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName, check_new_names
from dbt.adapters.silt.engine.commands.spark.types import kernel_schema
from dbt.adapters.silt.engine.commands.tables.schema_edits import is_column, require
from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError, RelationExistsError, UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.table.schema import StructType
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.ast import CreateMode, Name, ViewColumn, ViewScope
from dbt.adapters.silt.engine.sql.query.references import table_references
from dbt.adapters.silt.engine.statements.resolve.namespace import TemporaryView
from dbt.adapters.silt.engine.statements.resolve.reads import Resolved
from dbt.adapters.silt.engine.statements.steps.context import Context, Result, Routes, pass_to_spark, pass_with_query
from dbt.adapters.silt.engine.statements.steps.on_table import refuse_unsupported

_NOTHING = Result()


def _create_view(context: Context, statement: ast.CreateView) -> Result:
    """Runs CREATE VIEW; the query is stored as SQL, and expanded at each use."""
    if statement.scope is not ViewScope.PERSISTENT:
        return _create_temporary_view(context, statement)
    name = context.namespace.writable(statement.name)
    if name is None:
        return pass_with_query(context, statement, statement.query)
    refuse_unsupported(statement, str(name))
    if_absent = statement.mode is CreateMode.CREATE_IF_NOT_EXISTS
    if if_absent and context.catalog.find(name) is not None:
        context.catalog.note_lookup(name)
        return _NOTHING
    inputs = context.resolver.earlier_inputs.names
    resolved, found = _checked_columns(context, name, statement)
    view = replace(_view(context, name, statement, found), inputs=inputs)
    try:
        context.catalog.put_view(
            view,
            replace=statement.mode is CreateMode.CREATE_OR_REPLACE,
            replace_table=context.settings.replace_tables,
        )
    except RelationExistsError:
        if not if_absent:
            raise
        return _NOTHING
    build = context.settings.build
    if build is None:
        return _NOTHING
    return Result(facts=facts_of_query(of_view(build, view), resolved, context.resolver.time_zone))


def _alter_view_query(context: Context, statement: ast.AlterViewQuery) -> Result:
    """Runs ALTER VIEW ... AS."""
    name = context.namespace.writable(statement.name)
    if name is None:
        return pass_with_query(context, statement, statement.query)
    view, inputs = context.catalog.view(name), context.resolver.earlier_inputs.names
    _check_columns(str(name), (), _columns_of(context, name, statement.query)[1])
    changed = replace(
        view,
        inputs=inputs,
        text=context.kept(statement.query),
        columns=(),
        query_columns=(),
        current_database=context.namespace.database,
        current_schema=context.namespace.schema,
    )
    context.catalog.put_view(changed, replace=True)
    return _NOTHING


def _drop_view(context: Context, statement: ast.DropView) -> Result:
    """Runs DROP VIEW; a temporary view of that name takes precedence."""
    if drop_temporary(context, statement.name):
        return _NOTHING
    name = context.namespace.name_in_warehouse(statement.name)
    if name is None:
        return pass_to_spark(context, statement)
    context.catalog.drop_view(name, if_exists=statement.if_exists)
    return _NOTHING


def drop_temporary(context: Context, name: Name) -> bool:
    """Drops the temporary view of that name, which hides a persistent relation. Returns whether the view existed."""
    if len(name) != 1:
        return False
    kept = context.namespace.temporary.pop(name[0].lower(), None)
    return kept is not None or context.spark.catalog.dropTempView(name[0])


def _create_temporary_view(context: Context, statement: ast.CreateView) -> Result:
    """Creates a temporary view: kept here as SQL if it reads the warehouse, otherwise Spark's."""
    resolved = replace(context.resolver, notes_reads=False).query(statement.query)
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
        raise RelationExistsError("a temporary view with that name already exists", table=statement.name[0])
    columns = tuple(column.name for column in statement.columns)
    found = context.spark.sql(resolved.texts[0]).columns
    _check_columns(statement.name[0], columns, found)
    context.spark.catalog.dropTempView(statement.name[0])
    kept = TemporaryView(context.kept(statement.query), columns, _query_columns(columns, found))
    context.namespace.temporary[statement.name[0].lower()] = kept
    return _NOTHING


def _checked_columns(context: Context, name: RelationName, statement: ast.CreateView) -> tuple[Resolved, list[str]]:
    """Returns the resolved query, and the names of its columns."""
    for reference in table_references(statement.query):
        if reference.files is not None:
            continue
        if context.namespace.is_temporary(reference.parts):
            raise InvalidStatementError(
                f"a permanent view cannot read the temporary view `{reference.parts[0]}`",
                table=str(name),
                remedy="Create a temporary view, or a table",
            )
    resolved, found = _columns_of(context, name, statement.query, statement.columns)
    _check_columns(str(name), tuple(column.name for column in statement.columns), found)
    return resolved, found


def _query_columns(columns: Sequence[object], found: Sequence[str]) -> tuple[str, ...]:
    """Returns the query's names for a view's list of columns; empty if they may not identify its columns later."""
    is_unique = len({name.lower() for name in found}) == len(found)
    # A name that Spark makes of an expression with a function may be another name in another session.
    is_lasting = not any("(" in name for name in found)
    return tuple(found) if columns and is_unique and is_lasting else ()


def _columns_of(
    context: Context, name: RelationName, query: str, columns: Sequence[ViewColumn] = ()
) -> tuple[Resolved, list[str]]:
    """Returns the view's resolved query, which Spark must be able to run and which must not read the view, and its
    columns.
    """
    resolved = replace(context.resolver, notes_reads=False).query(query, name)
    frame = context.frame(resolved)
    if any(column.fields for column in columns):
        _check_fields(str(name), columns, kernel_schema(frame.schema))
    return resolved, frame.columns


def _check_fields(name: str, columns: Sequence[ViewColumn], schema: StructType) -> None:
    """Checks that the fields with comments exist, and are not elements, keys or values."""
    for column, field in zip(columns, schema, strict=False):
        own = StructType((replace(field, name=column.name),))
        for path, _ in column.fields:
            whole = (column.name, *path)
            require(own, whole, name)
            if not is_column(own, whole, name):
                raise InvalidStatementError(f"`{'.'.join(whole)}` is part of an array or a map", table=name)


def _check_columns(name: str, columns: tuple[str, ...], found: list[str]) -> None:
    if columns and len(columns) != len(found):
        raise InvalidStatementError(
            f"the view names {len(columns)} columns, but its query returns {len(found)}", table=name
        )
    check_new_names(*(columns or found))
    seen: dict[str, str] = {}
    for column in columns or found:
        if column.lower() in seen:
            both = " and ".join(f"`{each}`" for each in dict.fromkeys((seen[column.lower()], column)))
            raise InvalidStatementError(
                f"two columns of the view have the name {both}: names are case-insensitive",
                remedy="Give one of them another name, by AS or in the view's list of columns",
                table=name,
            )
        seen[column.lower()] = column


def _view(context: Context, name: RelationName, statement: ast.CreateView, found: Sequence[str]) -> View:
    return View(
        name=name,
        text=context.kept(statement.query),
        columns=statement.columns,
        query_columns=_query_columns(statement.columns, found),
        comment=statement.comment,
        properties=statement.properties,
        current_database=context.namespace.database,
        current_schema=context.namespace.schema,
    )


ROUTES: Routes = {
    ast.CreateView: _create_view,
    ast.AlterViewQuery: _alter_view_query,
    ast.DropView: _drop_view,
}
