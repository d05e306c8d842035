"""Runs INSERT in all its modes, each in a single commit."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame

from dbt.adapters.silt.engine.commands.insert import insertion
from dbt.adapters.silt.engine.commands.insert import replace as replace_command
from dbt.adapters.silt.engine.commands.insert.insertion import OPERATION
from dbt.adapters.silt.engine.commands.insert.placement import Placement
from dbt.adapters.silt.engine.commands.merge.plan import MergePlan
from dbt.adapters.silt.engine.commands.target import Outcome, Target
from dbt.adapters.silt.engine.kernel.errors import UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.ast import InsertMode
from dbt.adapters.silt.engine.statements.execute.default_values import with_defaults, with_named_defaults
from dbt.adapters.silt.engine.statements.resolve.merge_keys import MergeSides, merge_keys
from dbt.adapters.silt.engine.statements.resolve.namespace import WarehouseTable
from dbt.adapters.silt.engine.statements.steps.changed_keys import replace_changed_keys
from dbt.adapters.silt.engine.statements.steps.context import Context, Result
from dbt.adapters.silt.engine.statements.steps.on_table import Change, Texts, Verb, change_table
from dbt.adapters.silt.engine.statements.steps.qualifiers import SOURCE_ALIAS, identifier, qualifiers, rows_of

_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"


def insert(context: Context, statement: ast.Insert) -> Result:
    """Runs INSERT INTO, OVERWRITE, REPLACE WHERE, REPLACE USING, REPLACE ON and REPLACE CHANGED KEYS."""
    condition = _condition(statement)

    def refuse(table: str) -> None:
        if statement.if_not_exists:
            raise UnsupportedStatementError(
                "INSERT ... IF NOT EXISTS is not supported", table=table, remedy="Leave IF NOT EXISTS out"
            )

    def texts(table: WarehouseTable) -> Texts:
        expressions = () if condition is None else (condition,)
        return Texts(statement.query, expressions, qualifiers(table, statement.alias))

    def run(change: Change) -> Outcome:
        if statement.mode is InsertMode.REPLACE_CHANGED:
            return replace_changed_keys(context, statement, change, _placement(statement))
        sql, placement = _with_defaults(change.resolved.texts[0], _placement(statement), change.target)
        query = context.spark.sql(sql)
        if condition is None:
            return _unconditional(context, statement, change, query, placement)
        pinned = change.expressions[condition]
        return _replace(context, replace(statement, condition=pinned), change, query, placement)

    return change_table(context, statement, Verb(OPERATION, refuse, statement.query), texts, run)


def _replace(context: Context, pinned: ast.Insert, change: Change, query: DataFrame, placement: Placement) -> Outcome:
    """Replaces the rows that a pinned condition selects: REPLACE WHERE and ON, and OVERWRITE of a partition."""
    spark, target, settings = context.spark, change.target, change.settings
    if pinned.mode is InsertMode.REPLACE_ON:
        plan = _plan(context, pinned, change, query)
        return replace_command.replace_on(target, query, placement, plan, settings)
    rows = rows_of(context, change.table, pinned.alias, pinned.condition, target.snapshot)
    return replace_command.replace_where(spark, target, query, placement, rows, settings)


def _unconditional(
    context: Context, statement: ast.Insert, change: Change, query: DataFrame, placement: Placement
) -> Outcome:
    target, settings = change.target, change.settings
    if statement.mode is InsertMode.REPLACE_USING:
        return replace_command.replace_using(target, query, placement, statement.using, settings)
    if statement.mode is InsertMode.OVERWRITE and _overwrites_partitions(context):
        return replace_command.overwrite_partitions(target, query, placement, settings)
    if statement.mode is InsertMode.OVERWRITE:
        return insertion.overwrite(target, query, placement, settings)
    return insertion.append(target, query, placement, settings)


def _plan(context: Context, pinned: ast.Insert, change: Change, query: DataFrame) -> MergePlan:
    """Returns the plan of REPLACE ON's condition on a row of the table and a row of the query."""
    condition = pinned.condition or ""
    target_alias, source_alias = identifier(change.table, pinned.alias), pinned.source_alias or SOURCE_ALIAS
    sides = MergeSides(
        change.target.snapshot.schema, ((target_alias,),), ((source_alias,),), source_columns=query.columns
    )
    found = merge_keys(condition, sides, context.resolver.time_zone)
    return MergePlan(
        target_alias,
        source_alias,
        condition,
        clauses=(),
        keys=found.keys,
        target_predicate=found.target,
        keys_only=found.keys_only,
    )


def _overwrites_partitions(context: Context) -> bool:
    return (context.spark.conf.get(_OVERWRITE_MODE) or "").lower() == "dynamic"


def _condition(statement: ast.Insert) -> str | None:
    """Returns the condition on the rows to replace: REPLACE WHERE's, or the partition that OVERWRITE names."""
    constants = [f"{quote(each.column)} <=> {each.value}" for each in statement.partition if each.value is not None]
    if statement.mode is InsertMode.OVERWRITE and constants:
        return " and ".join(constants)
    return statement.condition


def _placement(statement: ast.Insert) -> Placement:
    return Placement(
        columns=statement.columns,
        by_name=statement.by_name,
        constants={each.column: each.value for each in statement.partition if each.value is not None},
        schema_evolution=statement.schema_evolution,
    )


def _with_defaults(query: str, placement: Placement, target: Target) -> tuple[str, Placement]:
    """Returns the query with DEFAULT written out, and the columns that it then fills."""
    if placement.by_name:
        return with_named_defaults(query, target.snapshot.schema, target.name), placement
    constants = {name.lower() for name in placement.constants}
    schema = target.snapshot.schema
    columns = placement.columns or tuple(name for name in schema.names if name.lower() not in constants)
    written, kept = with_defaults(query, columns, schema, target.name)
    return (query, placement) if written == query else (written, replace(placement, columns=kept))
