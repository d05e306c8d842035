"""Quotes and unquotes identifiers and strings as in Spark SQL; the only module that does either."""

from __future__ import annotations

import re
from collections.abc import Iterable

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PART = re.compile(r"`(?:[^`]|``)*`|[^.`]+")


def quote(identifier: str) -> str:
    """Returns the identifier in backquotes, with its own backquotes doubled, as Spark SQL reads it."""
    return "`" + identifier.replace("`", "``") + "`"


def quote_if_needed(identifier: str) -> str:
    """Returns the identifier, in backquotes unless every Spark and every reader of the log accepts it without them."""
    return identifier if _PLAIN.fullmatch(identifier) else quote(identifier)


def quoted_list(identifiers: Iterable[str]) -> str:
    """Returns the identifiers as an SQL list, each in backquotes."""
    return ", ".join(map(quote, identifiers))


def listed(names: Iterable[str]) -> str:
    """Returns the names for a message: unchanged, in backquotes; not for SQL."""
    return ", ".join(f"`{name}`" for name in names)


def unquote(identifier: str) -> str:
    """Returns the identifier without quotes if it is written as by `quote`, and otherwise unchanged."""
    if len(identifier) > 1 and identifier[0] == identifier[-1] == "`":
        return identifier[1:-1].replace("``", "`")
    return identifier


def split_name(name: str) -> tuple[str, ...]:
    """Returns the parts of a dotted name, as written; a dot between backquotes is not a separator."""
    return tuple(map(unquote, _PART.findall(name)))


def string_literal(text: str) -> str:
    """Returns a string literal of Spark SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
