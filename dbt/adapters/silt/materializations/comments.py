"""Finds the documented column comments that a table does not have yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbt.adapters.silt.engine.kernel.identifiers import quote, string_literal

if TYPE_CHECKING:
    from dbt.adapters.silt.column import SiltColumn

Documented = Mapping[str, Mapping[str, Any]]
"""The columns of a node by name, as dbt passes them to macros."""


def documented_comments(columns: Sequence[SiltColumn], documented: Documented) -> dict[str, str]:
    """Returns column comments by name, or by dotted path for nested fields; empty for columns without a description.

    A name matches in any case, unless the documentation requires the exact spelling (`quote: true`).
    """
    exact = {name: each for name, each in documented.items() if each.get("quote")}
    folded = {name.lower(): each for name, each in documented.items() if not each.get("quote")}
    found = {path: exact.get(path) or folded.get(path.lower()) for path in all_comments(columns)}
    return {path: each.get("description") or "" for path, each in found.items() if each is not None}


def comment_changes(columns: Sequence[SiltColumn], documented: Documented) -> list[str]:
    """Returns the changes for ALTER TABLE ... ALTER COLUMN that set the documented comments."""
    there = all_comments(columns)
    comments = documented_comments(columns, documented)
    return [
        f"{_quoted(path, columns)} comment {string_literal(text)}"
        for path, text in comments.items()
        if text != (there[path] or "")
    ]


def all_comments(columns: Sequence[SiltColumn]) -> dict[str, str | None]:
    """Returns the comments of all columns and of their nested fields, by name or dotted path."""
    inner = {path: text for each in columns for path, text in each.field_comments.items()}
    return {**inner, **{each.name: each.comment for each in columns}}


def _quoted(path: str, columns: Sequence[SiltColumn]) -> str:
    """Quotes a name, so that a name with a dot is not read as a path."""
    is_column = any(each.name == path for each in columns)
    return quote(path) if is_column else ".".join(map(quote, path.split(".")))
