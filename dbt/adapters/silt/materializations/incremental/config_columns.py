"""Columns as users write them in a configuration, as Spark SQL that says whose they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dbt_common.exceptions import CompilationError

from dbt.adapters.silt.engine.kernel.identifiers import quote, unquote
from dbt.adapters.silt.engine.sql.query.qualify import Scope


def column_named(text: str, columns: Iterable[str]) -> str | None:
    """The column that a text names: plain or in quotes of either kind, whatever the case; None if it names none."""
    names = {name.lower(): name for name in columns}
    written = text.strip()
    return names.get(written.lower()) or names.get(_without_quotes(written).lower())


def required_column(text: str, columns: Sequence[str], setting: str) -> str:
    """The column that a text of the configuration `setting` names.

    Raises:
        CompilationError: it names none.
    """
    found = column_named(text, columns)
    if found is None:
        raise CompilationError(f"`{setting}` names {text}, which is none of the columns {', '.join(columns)}")
    return found


def qualified(text: str, columns: Sequence[str], alias: str, setting: str) -> str:
    """A column, or an expression over columns, with each column qualified by an alias and in backquotes.

    So reserved words work, and `date_trunc('day', at)` is as good a key as `id`.

    Raises:
        CompilationError: the text names none of the columns.
    """
    column = column_named(text, columns)
    if column is not None:
        return f"{alias}.{quote(column)}"
    written = Scope(alias, columns, other="", clause=f"`{setting}`").qualify(text)
    if written == text:
        raise CompilationError(f"`{setting}` names {text}, which is none of the columns {', '.join(columns)}")
    return f"({written})"


def qualify_condition(condition: str, columns: Sequence[str], alias: str) -> str:
    """A condition whose bare names of these columns are qualified by an alias; names within a subquery are its own."""
    return Scope(alias, columns, other="", clause="condition").qualify(condition)


def _without_quotes(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] == '"':
        return text[1:-1].replace('""', '"')
    return unquote(text)
