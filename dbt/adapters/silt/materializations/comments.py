"""Finds the documented column comments that a table does not have yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dbt.adapters.silt.column import SiltColumn
from dbt.adapters.silt.engine.kernel.identifiers import quote, string_literal

Documented = Mapping[str, Mapping[str, Any]]
"""The columns of a node as dbt gives them to macros, by their names."""


def documented_comments(columns: Sequence[SiltColumn], documented: Documented) -> dict[str, str]:
    """Returns the comments of columns: by name, or dotted path inside of a column; empty where there is no description.

    A name matches in any case, unless the documentation wants it exactly as written (`quote: true`).
    """
    exact = {name: each for name, each in documented.items() if each.get("quote")}
    folded = {name.lower(): each for name, each in documented.items() if not each.get("quote")}
    found = {place: exact.get(place) or folded.get(place.lower()) for place in all_comments(columns)}
    return {place: each.get("description") or "" for place, each in found.items() if each is not None}


def comment_changes(columns: Sequence[SiltColumn], documented: Documented) -> list[str]:
    """Returns the changes for ALTER TABLE ... ALTER COLUMN that give a table the documented comments."""
    there = all_comments(columns)
    wanted = documented_comments(columns, documented)
    return [
        f"{_quoted(place, columns)} comment {string_literal(text)}"
        for place, text in wanted.items()
        if text != (there[place] or "")
    ]


def all_comments(columns: Sequence[SiltColumn]) -> dict[str, str | None]:
    """Returns the comment of every column, and of every field inside of one, by name or dotted path."""
    inner = {place: text for each in columns for place, text in each.field_comments.items()}
    return {**inner, **{each.name: each.comment for each in columns}}


def _quoted(place: str, columns: Sequence[SiltColumn]) -> str:
    """Quotes a name, so that one with a dot is not taken for a path."""
    is_column = any(each.name == place for each in columns)
    return quote(place) if is_column else ".".join(map(quote, place.split(".")))
