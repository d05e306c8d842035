"""Replaces the keyword DEFAULT in the VALUES of an INSERT and in the list of its SELECT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dbt.adapters.silt.engine.commands.writing import rules
from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError
from dbt.adapters.silt.engine.kernel.table.schema import StructField, StructType
from dbt.adapters.silt.engine.sql.cursor import Cursor
from dbt.adapters.silt.engine.sql.grammar.clauses import take_ctes
from dbt.adapters.silt.engine.sql.query.edits import Edit, edited
from dbt.adapters.silt.engine.sql.spans import Tokens
from dbt.adapters.silt.engine.sql.tokens import tokenize

_DEFAULT = "DEFAULT"


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


def with_named_defaults(query: str, schema: StructType, table: str) -> str:
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


_AFTER_LIST = (
    "FROM WHERE GROUP HAVING ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET WINDOW QUALIFY LATERAL UNION INTERSECT EXCEPT "
    "MINUS |>"
).split()


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
            remedy="Write DEFAULT in all rows, or in none",
            table=table,
        )
    return True


def _written(value: str, field: StructField, table: str) -> str:
    return rules.typed_default(field, table) if _is_default(value) else value
