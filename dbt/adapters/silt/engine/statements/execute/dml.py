"""DELETE, UPDATE, MERGE and TRUNCATE: their texts resolved in one cut, their predicates read, one command called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dbt.adapters.silt.engine.commands.merge import merge as merge_command
from dbt.adapters.silt.engine.commands.merge import plan as merge_plan
from dbt.adapters.silt.engine.commands.merge.plan import MergePlan
from dbt.adapters.silt.engine.commands.rows import delete as delete_command
from dbt.adapters.silt.engine.commands.rows import truncate as truncate_command
from dbt.adapters.silt.engine.commands.rows import update as update_command
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.ast import MatchKind, Name
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
        equalities = [f"{quote(part.column)} <=> {part.value}" for part in statement.partition]
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
    texts = [SqlFragment(each.value, outer) for each in statement.assignments]
    if statement.condition is not None:
        texts.append(SqlFragment(statement.condition, outer))
    resolved = context.resolver.resolve(texts, target=table.log)
    target = target_of(table.log, resolved)
    columns = [_column(each.column, outer) for each in statement.assignments]
    condition = None if statement.condition is None else resolved.texts[-1]
    outcome = update_command.update(
        context.spark,
        target,
        list(zip(columns, resolved.texts, strict=False)),
        rows_of(context, table, statement.alias, condition, target.snapshot),
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
    expressions = [SqlFragment(text, outer) for text in _expressions(statement)]
    resolved = context.resolver.resolve([SqlFragment(statement.source.query), *expressions], target=table.log)
    target = target_of(table.log, resolved)
    source = context.frame(resolved)
    sides = MergeSides(
        target.snapshot.schema,
        target_names=((identifier(table, statement.alias),),),
        source_names=((_source_alias(statement.source),),),
        source_columns=source.columns,
    )
    plan = _plan(context, statement, sides, resolved, outer)
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


def _expressions(statement: ast.Merge) -> Iterator[str]:
    """The texts of a MERGE that are expressions, in the order in which `_clauses` takes them back."""
    yield statement.condition
    for clause in statement.clauses:
        if clause.condition is not None:
            yield clause.condition
        if isinstance(clause.action, ast.UpdateSet):
            yield from (each.value for each in clause.action.assignments)
        elif isinstance(clause.action, ast.InsertValues):
            yield from clause.action.values


def _plan(
    context: Context, statement: ast.Merge, sides: MergeSides, resolved: Resolved, outer: Mapping[Name, str]
) -> MergePlan:
    texts = iter(resolved.texts[1:])
    condition = next(texts)
    keys = merge_keys(condition, sides, context.resolver.time_zone)
    return MergePlan(
        target_alias=next(iter(sides.target_names))[0],
        source_alias=next(iter(sides.source_names))[0],
        condition=condition,
        clauses=tuple(_clause(clause, texts, outer) for clause in statement.clauses),
        schema_evolution=statement.schema_evolution,
        keys=keys.keys,
        target_predicate=keys.target,
        source_bytes=resolved.bytes_read,
    )


def _clause(clause: ast.MergeClause, texts: Iterator[str], outer: Mapping[Name, str]) -> merge_plan.Clause:
    condition = None if clause.condition is None else next(texts)
    return merge_plan.Clause(_MATCHES[clause.kind], _action(clause.action, texts, outer), condition)


def _action(action: ast.MergeAction, texts: Iterator[str], outer: Mapping[Name, str]) -> merge_plan.Action:
    if isinstance(action, ast.DeleteRow):
        return merge_plan.Delete()
    if isinstance(action, ast.UpdateAll):
        return merge_plan.Update()
    if isinstance(action, ast.InsertAll):
        return merge_plan.Insert()
    if isinstance(action, ast.UpdateSet):
        return merge_plan.Update(tuple((_column(each.column, outer), next(texts)) for each in action.assignments))
    columns = [_column(column, outer) for column in action.columns] or [()] * len(action.values)
    return merge_plan.Insert(tuple((column, next(texts)) for column in columns))


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


_MATCHES: Mapping[MatchKind, merge_plan.Match] = {
    MatchKind.MATCHED: merge_plan.Match.MATCHED,
    MatchKind.NOT_MATCHED: merge_plan.Match.NOT_MATCHED,
    MatchKind.NOT_MATCHED_BY_SOURCE: merge_plan.Match.NOT_MATCHED_BY_SOURCE,
}
