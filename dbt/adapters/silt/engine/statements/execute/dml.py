"""Runs DELETE, UPDATE, MERGE and TRUNCATE."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from dbt.adapters.silt.engine.commands.merge import merge as merge_command
from dbt.adapters.silt.engine.commands.merge.plan import MergePlan
from dbt.adapters.silt.engine.commands.rows import delete as delete_command
from dbt.adapters.silt.engine.commands.rows import delete as rows_delete
from dbt.adapters.silt.engine.commands.rows import update as update_command
from dbt.adapters.silt.engine.commands.target import Outcome
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.ast import Name
from dbt.adapters.silt.engine.sql.grammar.clauses import expressions, with_expressions
from dbt.adapters.silt.engine.statements.resolve.merge_keys import MergeSides, merge_keys
from dbt.adapters.silt.engine.statements.resolve.namespace import WarehouseTable
from dbt.adapters.silt.engine.statements.steps.context import Context, Result, Routes
from dbt.adapters.silt.engine.statements.steps.on_table import SOURCE_ALIAS, Change, Texts, Verb, change_table, rows_of


def _delete(context: Context, statement: ast.Delete) -> Result:
    """Runs DELETE FROM."""

    def run(change: Change) -> Outcome:
        pinned = with_expressions(statement, change.expressions.__getitem__)
        rows = rows_of(context, change.table, statement.alias, pinned.condition, change.target.snapshot)
        return delete_command.delete(context.spark, change.target, rows, change.settings)

    return change_table(context, statement, Verb(delete_command.OPERATION), _texts(statement), run)


def _truncate(context: Context, statement: ast.Truncate) -> Result:
    """Runs TRUNCATE TABLE; with a partition, a delete of that partition."""
    if statement.partition:
        condition = " and ".join(f"{quote(part.column)} <=> {part.value}" for part in statement.partition)
        as_delete = ast.Delete(
            text=statement.text, unsupported=statement.unsupported, table=statement.table, condition=condition
        )
        return _delete(context, as_delete)
    return change_table(
        context,
        statement,
        Verb(rows_delete.TRUNCATE),
        lambda _: Texts(),
        lambda change: rows_delete.truncate(change.target, change.settings),
    )


def _update(context: Context, statement: ast.Update) -> Result:
    """Runs UPDATE ... SET."""

    def run(change: Change) -> Outcome:
        pinned = with_expressions(statement, change.expressions.__getitem__)
        return update_command.update(
            context.spark,
            change.target,
            [_assignment(each, change.qualifiers) for each in pinned.assignments],
            rows_of(context, change.table, statement.alias, pinned.condition, change.target.snapshot),
            change.settings,
        )

    return change_table(context, statement, Verb(update_command.OPERATION), _texts(statement), run)


def _merge(context: Context, statement: ast.Merge) -> Result:
    """Runs MERGE INTO."""

    def texts(table: WarehouseTable) -> Texts:
        outer = table.long_qualifiers(statement.alias) | _source_qualifiers(context, statement.source)
        return Texts(statement.source.query, expressions(statement), outer)

    def run(change: Change) -> Outcome:
        pinned = with_expressions(statement, change.expressions.__getitem__)
        source = context.frame(change.resolved)
        aliases = change.table.qualifier(statement.alias), _source_alias(statement.source)
        plan = _plan(context, pinned, change, aliases, source.columns)
        return merge_command.merge(context.spark, change.target, source, plan, change.settings)

    return change_table(context, statement, Verb(merge_command.OPERATION), texts, run)


def _texts(statement: ast.Delete | ast.Update) -> Callable[[WarehouseTable], Texts]:
    return lambda table: Texts(expressions=expressions(statement), qualifiers=table.long_qualifiers(statement.alias))


def _plan(
    context: Context, pinned: ast.Merge, change: Change, aliases: tuple[str, str], source_columns: Sequence[str]
) -> MergePlan:
    target, source = aliases
    sides = MergeSides(change.target.snapshot.schema, [(target,)], [(source,)], source_columns)
    keys = merge_keys(pinned.condition, sides, context.resolver.time_zone)
    return MergePlan(
        target_alias=target,
        source_alias=source,
        condition=pinned.condition,
        clauses=tuple(replace(clause, action=_action(clause.action, change.qualifiers)) for clause in pinned.clauses),
        schema_evolution=pinned.schema_evolution,
        skips_equal_rows=pinned.skips_equal_rows,
        keys=keys.keys,
        target_predicate=keys.target,
        source_bytes=change.resolved.bytes_read,
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
    """Returns a column to set, in which the command's alias replaces the table's longer names."""
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
    return source.name[-1] if source.name is not None else SOURCE_ALIAS


def _source_qualifiers(context: Context, source: ast.MergeSource) -> dict[Name, str]:
    if source.alias is not None or source.name is None or ast.is_path(source.name):
        return {}
    full = context.namespace.name_in_warehouse(source.name)
    return {} if full is None else {(full.database, full.schema, full.identifier): full.identifier}


ROUTES: Routes = {
    ast.Delete: _delete,
    ast.Update: _update,
    ast.Merge: _merge,
    ast.Truncate: _truncate,
}
