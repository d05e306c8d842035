"""CREATE TABLE, with or without a query."""

from __future__ import annotations

from dbt.adapters.silt.engine.commands.spark.types import kernel_schema
from dbt.adapters.silt.engine.commands.tables import create
from dbt.adapters.silt.engine.commands.tables.create import ColumnSpec, Definition, Place
from dbt.adapters.silt.engine.kernel.errors import UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.statements.execute.constraints import named
from dbt.adapters.silt.engine.statements.execute.context import Context, Result
from dbt.adapters.silt.engine.statements.execute.create_target import MODES, create_target_of
from dbt.adapters.silt.engine.statements.execute.foreign import pass_to_spark, pass_with_query
from dbt.adapters.silt.engine.statements.execute.functions import refuse_calls
from dbt.adapters.silt.engine.statements.execute.targets import (
    already_applied,
    changed,
    refuse_unsupported,
    settings_with,
)
from dbt.adapters.silt.engine.statements.resolve.expansion import SqlFragment

_FORMATS = (None, "delta", "silt")


def create_table(context: Context, statement: ast.CreateTable) -> Result:
    """CREATE [OR REPLACE] TABLE [AS]."""
    target = create_target_of(context, statement.name, statement.mode)
    if target is None:
        return pass_with_query(context, statement, statement.query)
    _refuse(statement, target.label)
    _refuse_functions(context, statement, target.label)
    if target.log is not None:
        done = already_applied(context, target.log, target.log.snapshot(), "CREATE TABLE")
        if done is not None:
            target.finish(context)
            return Result(outcome=done)
    definition = _definition(context, statement, target.label)
    texts = [] if statement.query is None else [SqlFragment(statement.query)]
    resolved = context.resolver.resolve(texts, target=target.log)
    query = context.frame(resolved) if texts else None
    log = target.prepare(context)
    place = Place(log, resolved.target, is_managed=target.path is None)
    outcome = create.create(
        context.spark, place, definition, query, MODES[statement.mode], settings_with(context, resolved)
    )
    target.finish(context)
    return changed(context, log, outcome)


def create_table_like(context: Context, statement: ast.CreateTableLike) -> Result:
    """CREATE TABLE ... LIKE: the schema of another relation, none of its rows."""
    target = create_target_of(context, statement.name, statement.mode)
    if target is None:
        if context.namespace.may_be_in_warehouse(statement.source):
            raise UnsupportedStatementError(
                "a table of Spark's own cannot be made like one of ours",
                table=".".join(statement.source),
                remedy="Use `create table ... as select ... where false`",
            )
        return pass_to_spark(context, statement)
    _refuse(statement, target.label)
    if target.log is not None:
        done = already_applied(context, target.log, target.log.snapshot(), "CREATE TABLE")
        if done is not None:
            target.finish(context)
            return Result(outcome=done)
    name = ".".join(quote(part) for part in statement.source)
    resolved = context.resolver.query(f"select * from {name}")
    schema = kernel_schema(context.frame(resolved).schema)
    like = Definition(
        columns=tuple(ColumnSpec(field.name, field.type.sql_name, field.nullable, field.comment) for field in schema),
        properties=statement.properties,
    )
    base = None if target.log is None else target.log.snapshot()
    log = target.prepare(context)
    settings = settings_with(context, resolved)
    outcome = create.create(context.spark, Place(log, base), like, None, MODES[statement.mode], settings)
    target.finish(context)
    return changed(context, log, outcome)


def _refuse(statement: ast.CreateTable | ast.CreateTableLike, table: str) -> None:
    refuse_unsupported(statement, table)
    if statement.using not in _FORMATS:
        raise UnsupportedStatementError(
            f"a table of a warehouse cannot be made `using {statement.using}`: its format is Delta",
            table=table,
            remedy="Leave USING out",
        )
    if statement.location is not None:
        raise UnsupportedStatementError(
            "the place of a table that has a name is its folder in the warehouse",
            table=table,
            remedy=f"Leave LOCATION out, or create it as delta.`{statement.location}`",
        )
    if isinstance(statement, ast.CreateTable):
        _refuse_layout(statement, table)


def _refuse_layout(statement: ast.CreateTable, table: str) -> None:
    if statement.clustered_by or statement.options:
        raise UnsupportedStatementError(
            "CLUSTER BY and OPTIONS are not supported", table=table, remedy="Leave them out, or use PARTITIONED BY"
        )


def _refuse_functions(context: Context, statement: ast.CreateTable, table: str) -> None:
    for column in statement.columns:
        refuse_calls(context, column.default, f"the default of the column `{column.name}`", table)
        refuse_calls(context, column.generated, f"the generated column `{column.name}`", table)
    for constraint in statement.constraints:
        refuse_calls(context, constraint.condition, "a check constraint", table)


def _definition(context: Context, statement: ast.CreateTable, table: str) -> Definition:
    constraints = named(statement.constraints, context.namespace, table)
    return Definition(
        columns=tuple(
            ColumnSpec(c.name, c.type, c.nullable, c.comment, c.default, c.generated) for c in statement.columns
        ),
        partition_columns=statement.partitioned_by,
        comment=statement.comment,
        properties=statement.properties,
        constraints=constraints.checks,
        keys=constraints.keys,
    )
