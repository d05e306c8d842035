"""Splits SQL text into its statements."""

from __future__ import annotations

from collections.abc import Sequence

from dbt.adapters.silt.engine.sql.tokens import Kind, Token, tokenize, without_byte_order_marks


def split_statements(text: str) -> list[str]:
    """Returns the statements of SQL text, without the comments and semicolons between them.

    Raises:
        StatementSyntaxError: if a string, a quoted name or a comment is not closed.
    """
    text = without_byte_order_marks(text)
    tokens = tokenize(text)
    if begins_script(tokens):
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


def begins_script(tokens: Sequence[Token]) -> bool:
    """Returns whether the text is a script, whose BEGIN is followed by its first statement, not by a semicolon."""
    following = [token for token in tokens[1:] if token.word not in ("TRANSACTION", "WORK")][:1]
    return tokens[0].word == "BEGIN" and not (following[0].word == ";" or following[0].kind is Kind.END)
