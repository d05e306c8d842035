"""INSERT in all its modes: one statement, one commit."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from dbt.adapters.silt.engine.commands.insert import insert as insert_command
from dbt.adapters.silt.engine.commands.insert import replace as replace_command
from dbt.adapters.silt.engine.commands.insert.placement import Placement
from dbt.adapters.silt.engine.commands.merge.plan import MergePlan
from dbt.adapters.silt.engine.commands.target import Outcome, Target, WriteSettings
from dbt.adapters.silt.engine.kernel.errors import UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.ast import InsertMode
from dbt.adapters.silt.engine.statements.execute.context import Context, Result
from dbt.adapters.silt.engine.statements.execute.default_values import with_defaults
from dbt.adapters.silt.engine.statements.execute.foreign import pass_with_query
from dbt.adapters.silt.engine.statements.execute.targets import (
    already_applied,
    changed,
    identifier,
    qualifiers,
    refuse_unsupported,
    rows_of,
    settings_with,
    table_to_change,
    target_of,
)
from dbt.adapters.silt.engine.statements.resolve.expansion import SqlFragment
from dbt.adapters.silt.engine.statements.resolve.merge_keys import MergeSides, merge_keys
from dbt.adapters.silt.engine.statements.resolve.namespace import WarehouseTable
from dbt.adapters.silt.engine.statements.resolve.reads import Resolved

_SOURCE_ALIAS = "__silt_source"
_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"


@dataclass(frozen=True)
class _Write:
    """What every mode needs."""

    target: Target
    query: DataFrame
    placement: Placement
    settings: WriteSettings


def insert(context: Context, statement: ast.Insert) -> Result:
    """INSERT INTO, OVERWRITE, REPLACE WHERE, REPLACE USING and REPLACE ON."""
    table = table_to_change(context, statement.table)
    if table is None:
        return pass_with_query(context, statement, statement.query)
    _refuse(statement, table.log.name)
    done = already_applied(context, table.log, table.log.snapshot(), "WRITE")
    if done is not None:
        return Result(outcome=done)
    condition = _condition(statement)
    texts = [SqlFragment(statement.query)]
    if condition is not None:
        texts.append(SqlFragment(condition, qualifiers(table, statement.alias)))
    resolved = context.resolver.resolve(texts, target=table.log)
    target = target_of(table.log, resolved)
    query, placement = _with_defaults(resolved.texts[0], _placement(statement), target)
    write = _Write(
        target,
        context.spark.sql(query),
        placement,
        settings_with(context, resolved),
    )
    if statement.mode is InsertMode.REPLACE_ON:
        plan = _plan(context, statement, table, resolved, write)
        outcome = replace_command.replace_on(
            context.spark, write.target, write.query, write.placement, plan, write.settings
        )
    elif condition is not None:
        rows = rows_of(context, table, statement.alias, resolved.texts[1], write.target.snapshot)
        outcome = replace_command.replace_where(
            context.spark, write.target, write.query, write.placement, rows, write.settings
        )
    else:
        outcome = _unconditional(context, statement, write)
    return changed(context, table.log, outcome)


def insert_directory(context: Context, statement: ast.InsertDirectory) -> Result:
    """INSERT OVERWRITE DIRECTORY: Spark writes files of no table; the query may read ours."""
    return pass_with_query(context, statement, statement.query)


def _unconditional(context: Context, statement: ast.Insert, write: _Write) -> Outcome:
    arguments = (context.spark, write.target, write.query, write.placement)
    if statement.mode is InsertMode.REPLACE_USING:
        return replace_command.replace_using(*arguments, statement.using, write.settings)
    if statement.mode is InsertMode.OVERWRITE and _overwrites_partitions(context):
        return replace_command.overwrite_partitions(*arguments, write.settings)
    if statement.mode is InsertMode.OVERWRITE:
        return insert_command.overwrite(*arguments, write.settings)
    return insert_command.append(*arguments, write.settings)


def _plan(
    context: Context, statement: ast.Insert, table: WarehouseTable, resolved: Resolved, write: _Write
) -> MergePlan:
    """What REPLACE ON demands of a row of the table and one of the query."""
    target_alias, source_alias = identifier(table, statement.alias), statement.source_alias or _SOURCE_ALIAS
    sides = MergeSides(
        write.target.snapshot.schema, ((target_alias,),), ((source_alias,),), source_columns=write.query.columns
    )
    found = merge_keys(resolved.texts[1], sides, context.resolver.time_zone)
    return MergePlan(
        target_alias,
        source_alias,
        resolved.texts[1],
        clauses=(),
        keys=found.keys,
        target_predicate=found.target,
        keys_only=found.keys_only,
    )


def _overwrites_partitions(context: Context) -> bool:
    return (context.spark.conf.get(_OVERWRITE_MODE) or "").lower() == "dynamic"


def _condition(statement: ast.Insert) -> str | None:
    """The rows to replace: those of REPLACE WHERE, or of the partition that OVERWRITE names."""
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
    """The query with DEFAULT written out, and the columns that it is then for."""
    if placement.by_name:
        return query, placement
    constants = {name.lower() for name in placement.constants}
    schema = target.snapshot.schema
    columns = placement.columns or tuple(name for name in schema.names if name.lower() not in constants)
    written, kept = with_defaults(query, columns, schema, target.name)
    return (query, placement) if written == query else (written, replace(placement, columns=kept))


def _refuse(statement: ast.Insert, table: str) -> None:
    refuse_unsupported(statement, table)
    if statement.if_not_exists:
        raise UnsupportedStatementError(
            "INSERT ... IF NOT EXISTS is not supported", table=table, remedy="Leave IF NOT EXISTS out"
        )
