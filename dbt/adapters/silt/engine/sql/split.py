"""Splits SQL text into its statements."""

from __future__ import annotations

from dbt.adapters.silt.engine.sql.byte_order_marks import without_byte_order_marks
from dbt.adapters.silt.engine.sql.tokens import Kind, tokenize


def split_statements(text: str) -> list[str]:
    """Returns the statements of SQL text, without the comments and semicolons between them.

    Raises:
        StatementSyntaxError: if a string, a quoted name or a comment is not closed.
    """
    text = without_byte_order_marks(text)
    tokens = tokenize(text)
    if tokens[0].word == "BEGIN":
        return [text]
    statements, first = [], None
    for index, token in enumerate(tokens):
        if token.word == ";" or token.kind is Kind.END:
            if first is not None:
                statements.append(text[first : tokens[index - 1].end])
            first = None
        elif first is None:
            first = token.start
    return statements
