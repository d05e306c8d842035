"""Finds the statement that EXECUTE IMMEDIATE runs."""

from __future__ import annotations

from dbt.adapters.silt.engine.kernel.errors import UnsupportedStatementError
from dbt.adapters.silt.engine.sql.cursor import Cursor
from dbt.adapters.silt.engine.sql.tokens import tokenize


def immediate(text: str) -> str | None:
    """Returns the expression whose value EXECUTE IMMEDIATE runs as a statement, if it is such a statement.

    Raises:
        StatementSyntaxError: if it is incomplete, or another statement follows.
        UnsupportedStatementError: if it has parameters, or stores its result in variables.
    """
    cursor = Cursor(text, tokenize(text))
    if not cursor.take("EXECUTE", "IMMEDIATE"):
        return None
    expression = cursor.until("INTO", "USING", ";", what="a statement as a string")
    if cursor.at_any("INTO", "USING"):
        raise UnsupportedStatementError(
            f"EXECUTE IMMEDIATE ... {cursor.token.word} is not supported",
            remedy="Write the values into the statement's string, and read the result from the statement itself",
        )
    while cursor.take(";"):
        pass
    cursor.finished()
    return expression
