"""Runs INSERT in all its modes, each in a single commit, and replaces the keyword DEFAULT in its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from dbt.adapters.silt.engine.changed_keys.replacement import replace_changed_keys
from dbt.adapters.silt.engine.commands.insert import insertion
from dbt.adapters.silt.engine.commands.insert import replace as replace_command
from dbt.adapters.silt.engine.commands.insert.insertion import OPERATION
from dbt.adapters.silt.engine.commands.insert.placement import Placement
from dbt.adapters.silt.engine.commands.merge.plan import MergePlan
from dbt.adapters.silt.engine.commands.target import Outcome, Target
from dbt.adapters.silt.engine.commands.writing import rules
from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError, UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.table.schema import StructField, StructType
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.ast import InsertMode
from dbt.adapters.silt.engine.sql.cursor import Cursor
from dbt.adapters.silt.engine.sql.grammar.clauses import take_ctes
from dbt.adapters.silt.engine.sql.spans import Edit, Tokens, edited
from dbt.adapters.silt.engine.sql.tokens import tokenize
from dbt.adapters.silt.engine.statements.resolve.merge_keys import MergeSides, merge_keys
from dbt.adapters.silt.engine.statements.resolve.namespace import WarehouseTable
from dbt.adapters.silt.engine.statements.steps.context import Context, Result, Routes
from dbt.adapters.silt.engine.statements.steps.on_table import SOURCE_ALIAS, Change, Texts, Verb, change_table, rows_of

_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"

_DEFAULT = "DEFAULT"
_AFTER_LIST = (
    "FROM WHERE GROUP HAVING ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET WINDOW QUALIFY LATERAL UNION INTERSECT EXCEPT "
    "MINUS |>"
).split()


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
        return Texts(statement.query, expressions, table.long_qualifiers(statement.alias))

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
    target_alias, source_alias = change.table.qualifier(pinned.alias), pinned.source_alias or SOURCE_ALIAS
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
        return _with_named_defaults(query, target.snapshot.schema, target.name), placement
    constants = {name.lower() for name in placement.constants}
    schema = target.snapshot.schema
    columns = placement.columns or tuple(name for name in schema.names if name.lower() not in constants)
    written, kept = with_defaults(query, columns, schema, target.name)
    return (query, placement) if written == query else (written, replace(placement, columns=kept))


def with_defaults(query: str, columns: Sequence[str], schema: StructType, table: str) -> tuple[str, tuple[str, ...]]:
    """Replaces each DEFAULT in VALUES or SELECT by its expression; returns the query and the columns that it fills.

    A generated or identity column is left out of both, so that its values are computed. A query of another kind is
    returned unchanged.

    Args:
        columns: the table's columns to which the query's columns are written.

    Raises:
        InvalidStatementError: if a generated column is DEFAULT in some rows but not in all, or if the column of a
            DEFAULT in a SELECT cannot be determined.
    """
    rows = _rows(query)
    if rows is None:
        return _with_defaults_in_list(query, columns, schema, table)
    if not any(_is_default(value) for row in rows for value in row):
        return query, tuple(columns)
    if any(len(row) != len(columns) for row in rows):
        return query, tuple(columns)
    fields = [schema.require(name, table) for name in columns]
    kept = [
        position
        for position, field in enumerate(fields)
        if not _is_computed(field, [row[position] for row in rows], table)
    ]
    texts = (", ".join(_written(row[position], fields[position], table) for position in kept) for row in rows)
    return "VALUES " + ", ".join(f"({text})" for text in texts), tuple(columns[position] for position in kept)


def _with_named_defaults(query: str, schema: StructType, table: str) -> str:
    """Replaces DEFAULT as `with_defaults` does, in a SELECT whose column names are the table's.

    Raises:
        InvalidStatementError: if a DEFAULT has no name.
    """
    edits = []
    items = _list(query)
    for position, item in enumerate(items):
        if item.is_default:
            if item.alias is None:
                raise _not_placed("a DEFAULT has no name", table)
            field = schema.require(item.alias, table)
            edits.append(
                _left_out(items, position)
                if field.is_computed
                else Edit(item.start, item.value_end, rules.typed_default(field, table))
            )
    return edited(query, edits)


def _with_defaults_in_list(
    query: str, columns: Sequence[str], schema: StructType, table: str
) -> tuple[str, tuple[str, ...]]:
    items = _list(query)
    edits, kept = [], list(columns)
    for position, item in reversed(list(enumerate(items))):
        if not item.is_default:
            continue
        if any(before.is_star for before in items[:position]):
            raise _not_placed("there is a star before DEFAULT", table)
        if position >= len(columns):
            return query, tuple(columns)
        field = schema.require(columns[position], table)
        if not field.is_computed:
            edits.append(Edit(item.start, item.value_end, rules.typed_default(field, table)))
        else:
            edits.append(_left_out(items, position))
            del kept[position]
    return edited(query, edits), tuple(kept)


@dataclass(frozen=True)
class _Item:
    """An item of a SELECT list: its span, the end of its value, and the alias after the value."""

    start: int
    end: int
    value_end: int
    is_default: bool
    is_star: bool
    alias: str | None


def _list(query: str) -> list[_Item]:
    """Returns the items of a SELECT list, or an empty list for any other query, or if an item is missing."""
    cursor = Cursor(query, tokenize(query))
    if cursor.at("WITH"):
        take_ctes(cursor)
    items: list[_Item] = []
    if not cursor.take("SELECT"):
        return items
    cursor.take_any("ALL", "DISTINCT")
    while not cursor.at_end:
        first = cursor.at_token
        if cursor.at_any(",", *_AFTER_LIST):
            return []  # Spark reports the mistake
        cursor.until(",", *_AFTER_LIST, what="a value")
        items.append(_item(cursor.tokens[first : cursor.at_token]))
        if not cursor.take(","):
            break
    return items


def _item(tokens: Tokens) -> _Item:
    first, last = tokens[0], tokens[-1]
    words = [token.word for token in tokens]
    is_default = words[0] == _DEFAULT and (len(tokens) == 1 or (last.is_identifier and words[1:-1] in ([], ["AS"])))
    alias = last.identifier if is_default and len(tokens) > 1 else None
    value_end = first.end if is_default else last.end
    is_star = words[0] == "*" or ("." in words and "*" in words[words.index(".") + 1 :][:1])
    return _Item(first.start, last.end, value_end, is_default, is_star, alias)


def _left_out(items: Sequence[_Item], position: int) -> Edit:
    """Removes an item from the list, with the comma next to it."""
    item = items[position]
    if position + 1 < len(items):
        return Edit(item.start, items[position + 1].start, "")
    return Edit(items[position - 1].end if position else item.start, item.end, "")


def _not_placed(problem: str, table: str) -> InvalidStatementError:
    return InvalidStatementError(
        f"{problem}, so it is not clear which column it is for",
        remedy="Name the columns, or leave the columns that get their defaults out of the INSERT",
        table=table,
    )


def _rows(query: str) -> list[tuple[str, ...]] | None:
    """Returns the SQL of the values of an inline table, row by row, or None for any other query."""
    cursor = Cursor(query, tokenize(query))
    if not cursor.take("VALUES"):
        return None
    rows = []
    while True:
        if cursor.at("("):
            inside = cursor.group_cursor()
            rows.append(inside.separated(_value))
        else:
            rows.append((_value(cursor),))
        if cursor.at_end:
            return rows
        if not cursor.take(","):
            return None


def _value(cursor: Cursor) -> str:
    return cursor.until(",", what="a value")


def _is_default(value: str) -> bool:
    return value.upper() == _DEFAULT


def _is_computed(field: StructField, values: Sequence[str], table: str) -> bool:
    if not field.is_computed or not any(map(_is_default, values)):
        return False
    if not all(map(_is_default, values)):
        raise InvalidStatementError(
            f"the column `{field.name}`, which is generated, is DEFAULT in some rows and has a value in others",
            remedy="Write DEFAULT in every row, or in no row",
            table=table,
        )
    return True


def _written(value: str, field: StructField, table: str) -> str:
    return rules.typed_default(field, table) if _is_default(value) else value


ROUTES: Routes = {
    ast.Insert: insert,
}
