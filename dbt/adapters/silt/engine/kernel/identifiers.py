"""Quotes and unquotes identifiers and strings as Spark SQL writes them: the one home of both."""

from __future__ import annotations


def quote(identifier: str) -> str:
    """The identifier in backquotes, those within it doubled, as Spark SQL reads it."""
    return "`" + identifier.replace("`", "``") + "`"


def unquote(identifier: str) -> str:
    """The identifier itself, where it is given as `quote` writes it."""
    if len(identifier) > 1 and identifier[0] == identifier[-1] == "`":
        return identifier[1:-1].replace("``", "`")
    return identifier


def string_literal(text: str) -> str:
    """A text as Spark SQL reads it between single quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
