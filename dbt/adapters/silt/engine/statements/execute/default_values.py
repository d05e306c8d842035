"""Replaces the word DEFAULT among the values of an INSERT."""

from __future__ import annotations

from collections.abc import Sequence

from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError
from dbt.adapters.silt.engine.kernel.table.schema import StructField, StructType
from dbt.adapters.silt.engine.sql.cursor import Cursor
from dbt.adapters.silt.engine.sql.query.quotes import for_any_session
from dbt.adapters.silt.engine.sql.tokens import tokenize

_DEFAULT = "DEFAULT"


def with_defaults(query: str, columns: Sequence[str], schema: StructType, table: str) -> tuple[str, tuple[str, ...]]:
    """VALUES with each DEFAULT written out, and the columns that its values are then for.

    The values of a generated column are left out, so that they are computed. A query of another kind stays as it is.

    Args:
        columns: the table's columns that the query's are for.

    Raises:
        InvalidStatementError: a generated column is DEFAULT in some rows and has a value in others.
    """
    rows = _rows(query)
    if rows is None or not any(_is_default(value) for row in rows for value in row):
        return query, tuple(columns)
    if any(len(row) != len(columns) for row in rows):
        return query, tuple(columns)
    fields = [schema.require(name, table) for name in columns]
    kept = [place for place, field in enumerate(fields) if not _is_computed(field, [row[place] for row in rows], table)]
    texts = (", ".join(_written(row[place], fields[place]) for place in kept) for row in rows)
    return "VALUES " + ", ".join(f"({text})" for text in texts), tuple(columns[place] for place in kept)


def _rows(query: str) -> list[tuple[str, ...]] | None:
    """The values of an inline table as text, row by row; None for any other query."""
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
    if field.generation_expression is None or not any(map(_is_default, values)):
        return False
    if not all(map(_is_default, values)):
        raise InvalidStatementError(
            f"the generated column `{field.name}` is DEFAULT in some rows and has a value in others",
            remedy="Write DEFAULT in all rows, or in none",
            table=table,
        )
    return True


def _written(value: str, field: StructField) -> str:
    return f"cast(({for_any_session(field.default)}\n) as {field.type.sql_name})" if _is_default(value) else value
