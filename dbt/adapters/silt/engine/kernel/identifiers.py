"""Quotes and unquotes identifiers and strings as Spark SQL writes them: the one home of both."""

from __future__ import annotations

import re
from collections.abc import Iterable

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PART = re.compile(r"`(?:[^`]|``)*`|[^.`]+")


def quote(identifier: str) -> str:
    """The identifier in backquotes, those within it doubled, as Spark SQL reads it."""
    return "`" + identifier.replace("`", "``") + "`"


def quote_if_needed(identifier: str) -> str:
    """The identifier, in backquotes unless every Spark and every reader of the log takes it without."""
    return identifier if _PLAIN.fullmatch(identifier) else quote(identifier)


def quoted_list(identifiers: Iterable[str]) -> str:
    """The identifiers as a list of SQL, each in backquotes."""
    return ", ".join(map(quote, identifiers))


def listed(names: Iterable[str]) -> str:
    """The names as a message lists them: as they are, between backquotes; not SQL."""
    return ", ".join(f"`{name}`" for name in names)


def unquote(identifier: str) -> str:
    """The identifier itself, where it is given as `quote` writes it."""
    if len(identifier) > 1 and identifier[0] == identifier[-1] == "`":
        return identifier[1:-1].replace("``", "`")
    return identifier


def split_name(name: str) -> tuple[str, ...]:
    """The parts of a dotted name, as written; a dot between backquotes divides nothing."""
    return tuple(map(unquote, _PART.findall(name)))


def string_literal(text: str) -> str:
    """A text as Spark SQL reads it between single quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
