"""Reduces SQL to its tokens, without comments and white space."""

from __future__ import annotations

from dbt.adapters.silt.engine.kernel.errors import StatementSyntaxError
from dbt.adapters.silt.engine.sql.tokens import tokenize


def normal_text(sql: str) -> str:
    """Returns the tokens of SQL, separated by a space; text that cannot be split into tokens is returned unchanged."""
    try:
        return " ".join(token.text for token in tokenize(sql))
    except StatementSyntaxError:
        return sql
