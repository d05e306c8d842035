"""DELETE, UPDATE, MERGE and TRUNCATE: their texts resolved in one cut, their predicates read, one command called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dbt.adapters.silt.engine.commands.merge import merge as merge_command
from dbt.adapters.silt.engine.commands.merge.plan import MergePlan
from dbt.adapters.silt.engine.commands.rows import delete as delete_command
from dbt.adapters.silt.engine.commands.rows import truncate as truncate_command
from dbt.adapters.silt.engine.commands.rows import update as update_command
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.ast import Name
from dbt.adapters.silt.engine.sql.grammar.expressions import expressions, with_expressions
from dbt.adapters.silt.engine.sql.tokens import quoted
from dbt.adapters.silt.engine.statements.execute.context import Context, Result
from dbt.adapters.silt.engine.statements.execute.foreign import pass_to_spark
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


def delete(context: Context, statement: ast.Delete) -> Result:
    """DELETE FROM."""
    table = table_to_change(context, statement.table)
    if table is None:
        return pass_to_spark(context, statement)
    return _delete(context, statement, table, statement.alias, statement.condition)


def truncate(context: Context, statement: ast.Truncate) -> Result:
    """TRUNCATE TABLE; with a partition, a delete of that partition."""
    table = table_to_change(context, statement.table)
    if table is None:
        return pass_to_spark(context, statement)
    if statement.partition:
        equalities = [f"{quoted(part.column)} <=> {part.value}" for part in statement.partition]
        return _delete(context, statement, table, None, " and ".join(equalities))
    refuse_unsupported(statement, table.log.name)
    done = already_applied(context, table.log, table.log.snapshot(), "TRUNCATE")
    if done is not None:
        return Result(outcome=done)
    resolved = context.resolver.resolve([], target=table.log)
    settings = settings_with(context, resolved)
    outcome = truncate_command.truncate(context.spark, target_of(table.log, resolved), settings)
    return changed(context, table.log, outcome)


def update(context: Context, statement: ast.Update) -> Result:
    """UPDATE ... SET."""
    table = table_to_change(context, statement.table)
    if table is None:
        return pass_to_spark(context, statement)
    refuse_unsupported(statement, table.log.name)
    done = already_applied(context, table.log, table.log.snapshot(), "UPDATE")
    if done is not None:
        return Result(outcome=done)
    outer = qualifiers(table, statement.alias)
    texts = expressions(statement)
    resolved = context.resolver.resolve([SqlFragment(text, outer) for text in texts], target=table.log)
    pinned = with_expressions(statement, dict(zip(texts, resolved.texts, strict=True)).__getitem__)
    target = target_of(table.log, resolved)
    outcome = update_command.update(
        context.spark,
        target,
        [_assignment(each, outer) for each in pinned.assignments],
        rows_of(context, table, statement.alias, pinned.condition, target.snapshot),
        settings_with(context, resolved),
    )
    return changed(context, table.log, outcome)


def merge(context: Context, statement: ast.Merge) -> Result:
    """MERGE INTO."""
    table = table_to_change(context, statement.table)
    if table is None:
        return pass_to_spark(context, statement)
    refuse_unsupported(statement, table.log.name)
    done = already_applied(context, table.log, table.log.snapshot(), "MERGE")
    if done is not None:
        return Result(outcome=done)
    outer = qualifiers(table, statement.alias) | _source_qualifiers(context, statement.source)
    texts = expressions(statement)
    fragments = [SqlFragment(statement.source.query), *(SqlFragment(text, outer) for text in texts)]
    resolved = context.resolver.resolve(fragments, target=table.log)
    pinned = with_expressions(statement, dict(zip(texts, resolved.texts[1:], strict=True)).__getitem__)
    target = target_of(table.log, resolved)
    source = context.frame(resolved)
    sides = MergeSides(
        target.snapshot.schema,
        target_names=((identifier(table, statement.alias),),),
        source_names=((_source_alias(statement.source),),),
        source_columns=source.columns,
    )
    plan = _plan(context, pinned, sides, resolved, outer)
    outcome = merge_command.merge(context.spark, target, source, plan, settings_with(context, resolved))
    return changed(context, table.log, outcome)


def _delete(
    context: Context,
    statement: ast.Delete | ast.Truncate,
    table: WarehouseTable,
    alias: str | None,
    condition: str | None,
) -> Result:
    refuse_unsupported(statement, table.log.name)
    done = already_applied(context, table.log, table.log.snapshot(), "DELETE")
    if done is not None:
        return Result(outcome=done)
    texts = [] if condition is None else [SqlFragment(condition, qualifiers(table, alias))]
    resolved = context.resolver.resolve(texts, target=table.log)
    target = target_of(table.log, resolved)
    rows = rows_of(context, table, alias, resolved.texts[0] if texts else None, target.snapshot)
    outcome = delete_command.delete(context.spark, target, rows, settings_with(context, resolved))
    return changed(context, table.log, outcome)


def _plan(
    context: Context, pinned: ast.Merge, sides: MergeSides, resolved: Resolved, outer: Mapping[Name, str]
) -> MergePlan:
    keys = merge_keys(pinned.condition, sides, context.resolver.time_zone)
    return MergePlan(
        target_alias=next(iter(sides.target_names))[0],
        source_alias=next(iter(sides.source_names))[0],
        condition=pinned.condition,
        clauses=tuple(replace(clause, action=_action(clause.action, outer)) for clause in pinned.clauses),
        schema_evolution=pinned.schema_evolution,
        keys=keys.keys,
        target_predicate=keys.target,
        source_bytes=resolved.bytes_read,
    )


def _action(action: ast.MergeAction, outer: Mapping[Name, str]) -> ast.MergeAction:
    if isinstance(action, ast.UpdateSet):
        return ast.UpdateSet(tuple(_assignment(each, outer) for each in action.assignments))
    if isinstance(action, ast.InsertValues):
        return ast.InsertValues(tuple(_column(column, outer) for column in action.columns), action.values)
    return action


def _assignment(assignment: ast.Assignment, outer: Mapping[Name, str]) -> ast.Assignment:
    return ast.Assignment(_column(assignment.column, outer), assignment.value)


def _column(name: Name, outer: Mapping[Name, str]) -> Name:
    """A column to set: a qualifier by the table's longer names becomes the one that the command knows."""
    for full, alias in outer.items():
        for length in range(len(full), 1, -1):
            if len(name) > length and _same(name[:length], full[-length:]):
                return (alias, *name[length:])
    return name


def _same(first: Name, second: Name) -> bool:
    return [part.lower() for part in first] == [part.lower() for part in second]


def _source_alias(source: ast.MergeSource) -> str:
    if source.alias is not None:
        return source.alias
    return source.name[-1] if source.name is not None else _SOURCE_ALIAS


def _source_qualifiers(context: Context, source: ast.MergeSource) -> dict[Name, str]:
    if source.alias is not None or source.name is None or ast.is_path(source.name):
        return {}
    full = context.namespace.name_in_warehouse(source.name)
    return {} if full is None else {(full.database, full.schema, full.identifier): full.identifier}
