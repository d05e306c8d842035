"""Renders values of a unit test's fixture as SQL, for the types that no string can be cast to."""

from __future__ import annotations

import json
from typing import Any

from dbt.adapters.silt.engine.kernel.identifiers import string_literal
from dbt.adapters.silt.engine.sql.tokens import Kind, string_value, tokenize

_VARIANT = "variant"


def nested_literal(value: Any, kind: str) -> str:
    """Returns an expression of an array, map, struct or variant type.

    Args:
        value: a list or mapping of YAML; an SQL expression; or a literal whose text is JSON or an SQL expression.
        kind: the type, as SQL spells it.
    """
    text = _literal_text(value) if isinstance(value, str) else json.dumps(value, default=str)
    if text is None or not _is_json(text, kind):
        return f"try_cast({value if text is None else text} as {kind})"
    if kind.lower() == _VARIANT:
        return f"parse_json({string_literal(text)})"
    return f"from_json({string_literal(text)}, {string_literal(kind)}, map('mode', 'FAILFAST'))"


def _literal_text(expression: str) -> str | None:
    """Returns the value of a string literal; None if the expression is not one."""
    first, *others = tokenize(expression)
    return string_value(first) if first.kind is Kind.STRING and len(others) == 1 else None


def _is_json(text: str, kind: str) -> bool:
    """Whether a text is JSON for the type; a single word or number is JSON for a variant only."""
    try:
        value = json.loads(text)
    except ValueError:
        return False
    return isinstance(value, list | dict) or kind.lower() == _VARIANT
