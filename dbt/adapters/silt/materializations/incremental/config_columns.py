"""Qualifies the columns that users name in a configuration with the alias of a table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from dbt_common.exceptions import CompilationError, DbtDatabaseError

from dbt.adapters.silt.engine.kernel.identifiers import quote, unquote
from dbt.adapters.silt.engine.kernel.near_names import nearest
from dbt.adapters.silt.lazy import lazy_module

if TYPE_CHECKING:
    from dbt.adapters.silt.column import SiltColumn
    from dbt.adapters.silt.engine.sql.query import column_names
else:
    column_names = lazy_module("dbt.adapters.silt.engine.sql.query.column_names")


_DOUBLE_QUOTED = re.compile(r'"(?:[^"]|"")+"')


def column_named(text: str, columns: Iterable[str]) -> str | None:
    """Returns the column that a string names, if any: plain or in quotes of either kind, in any case."""
    names = {name.lower(): name for name in columns}
    written = text.strip()
    return names.get(written.lower()) or names.get(without_quotes(written).lower())


def required_column(text: str, columns: Sequence[str], setting: str) -> str:
    """Returns the column that a string of the config `setting` names.

    Raises:
        CompilationError: if it names no column.
    """
    found = column_named(text, columns)
    if found is None:
        raise _no_column(text, columns, setting)
    return found


def qualified(text: str, columns: Sequence[str], alias: str, setting: str) -> str:
    """Returns a column, or an expression over columns, with each column qualified by an alias and in backquotes.

    So reserved words work, and a key can be `date_trunc('day', at)` as well as `id`.

    Raises:
        CompilationError: if the string does not name any of the columns.
    """
    column = column_named(text, columns)
    if column is not None:
        return f"{alias}.{quote(column)}"
    written = column_names.Scope(alias, columns, other="", clause=f"`{setting}`").qualify(text)
    if written == text:
        raise _no_column(text, columns, setting)
    return f"({written})"


def qualify_condition(condition: str, columns: Sequence[str], alias: str) -> str:
    """Qualifies the unqualified names of these columns in a condition by an alias, except in subqueries."""
    return column_names.Scope(alias, columns, other="", clause="condition").qualify(condition)


def without_quotes(text: str) -> str:
    """Returns a name without its quotes of either kind, if it has any."""
    if len(text) > 1 and text[0] == text[-1] == '"':
        return text[1:-1].replace('""', '"')
    return unquote(text)


def quoted_name(text: str) -> str:
    """Returns the name that a configuration gives, plain or in quotes of either kind, in backquotes."""
    return quote(without_quotes(text.strip()))


def expression(text: str) -> str:
    """Returns an expression of a configuration; a name in double quotes, a string in Spark, gets backquotes."""
    return quoted_name(text) if _DOUBLE_QUOTED.fullmatch(text.strip()) else text


def check_expressions(
    texts: Iterable[str], columns: Sequence[SiltColumn], setting: str, schema_of: Callable[[str], list[SiltColumn]]
) -> None:
    """Checks that Spark can compute each key of a configuration for each row: a wrong key would fail in a later run.

    Args:
        texts: columns and expressions; the columns are known to exist.
        schema_of: returns the columns of a query, which is not run.

    Raises:
        CompilationError: if an expression names another column, cannot be parsed, or needs several rows.
    """
    names = [each.name for each in columns]
    rows = f"select 1 as one from ({_row(columns)}) as DBT_INTERNAL_DEST"
    for text in (each for each in texts if column_named(each, names) is None):
        try:
            schema_of(f"{rows} where ({text}\n) is not null")
        except DbtDatabaseError as error:
            if _is_valid(rows, schema_of):
                raise CompilationError(
                    f"`{setting}` is {text}, which cannot be computed from the columns {', '.join(names)}: {error.msg}"
                ) from error


def check_conditions(
    conditions: Mapping[str, str],
    columns: Sequence[SiltColumn],
    aliases: tuple[str, str],
    schema_of: Callable[[str], list[SiltColumn]],
) -> None:
    """Checks that conditions on the rows of a table and of a query name no missing column, and can be parsed.

    Args:
        conditions: each condition, with the name of its config.
        columns: the columns of both.
        aliases: the names of both in the conditions.
        schema_of: returns the columns of a query, which is not run.

    Raises:
        CompilationError: if a condition names a missing column or cannot be parsed.
    """
    rows = "select 1 as one from " + ", ".join(f"({_row(columns)}) as {alias}" for alias in aliases)
    for condition, setting in conditions.items():
        try:
            schema_of(f"{rows} where ({condition}\n)")
        except DbtDatabaseError as error:
            if any(each in str(error.msg) for each in _CERTAIN) and _is_valid(rows, schema_of):
                raise CompilationError(f"`{setting}` has the condition {condition}: {error.msg}") from error


_CERTAIN = ("[UNRESOLVED_COLUMN", "[PARSE_SYNTAX_ERROR")
"""The errors that a later run certainly raises, too: for others, a statement may qualify names or create a table."""


def _row(columns: Sequence[SiltColumn]) -> str:
    """Returns a query for a row of nulls."""
    values = (f"cast(null as {each.declared_type or each.dtype}) as {quote(each.name)}" for each in columns)
    return f"select {', '.join(values)}"


def _is_valid(query: str, schema_of: Callable[[str], list[SiltColumn]]) -> bool:
    try:
        schema_of(query)
    except DbtDatabaseError:  # a type that SQL cannot name
        return False
    return True


def _no_column(text: str, columns: Sequence[str], setting: str) -> CompilationError:
    named = text.strip() or "an empty string"
    near = nearest(without_quotes(text.strip()), columns)
    meant = "" if near is None else f": did you mean `{near}`?"
    return CompilationError(f"`{setting}` names {named}, which is not one of the columns {', '.join(columns)}{meant}")
