"""Renders values of unit test fixtures as SQL, for types that strings cannot be cast to."""

from __future__ import annotations

import json
from typing import Any

from dbt.adapters.silt.engine.sql.query.quotes import SPARKS_DEFAULT, Quotes
from dbt.adapters.silt.engine.sql.tokens import Kind, tokenize

_VARIANT = "variant"


def nested_literal(value: Any, kind: str, quotes: Quotes = SPARKS_DEFAULT) -> str:
    """Returns an expression of an array, map, struct or variant type.

    Args:
        value: a YAML list or mapping, an SQL expression, or a string literal that contains JSON or an SQL expression.
        kind: the type, as SQL spells it.
        quotes: how the session reads quoted strings.
    """
    text = _literal_text(value, quotes) if isinstance(value, str) else json.dumps(value, default=str)
    if text is None or not _is_json(text, kind):
        return f"try_cast({value if text is None else text} as {kind})"
    if kind.lower() == _VARIANT:
        return f"parse_json({quotes.constant(text)})"
    return f"from_json({quotes.constant(text)}, {quotes.constant(kind)}, map('mode', 'FAILFAST'))"


def _literal_text(expression: str, quotes: Quotes) -> str | None:
    """Returns the value of the expression if it is a string literal."""
    first, *others = tokenize(expression)
    return quotes.value(first) if first.kind is Kind.STRING and len(others) == 1 else None


def _is_json(text: str, kind: str) -> bool:
    """Returns whether a string is JSON for the type; a single word or number is valid for a variant only."""
    try:
        value = json.loads(text)
    except ValueError:
        return False
    return isinstance(value, list | dict) or kind.lower() == _VARIANT
