"""Removes byte order marks, which editors put at the start of files, from statements."""

from __future__ import annotations

from typing import Final

from dbt.adapters.silt.engine.sql.tokens import tokenize

_MARK: Final = "\ufeff"


def without_byte_order_marks(text: str) -> str:
    """Returns the text with a blank for each mark outside of strings, quoted names and comments.

    The file of a model or a test becomes a part of a larger statement, so that its mark can be anywhere.

    Raises:
        StatementSyntaxError: as raised by `tokenize`.
    """
    if _MARK not in text:
        return text
    characters = list(text)
    for token in tokenize(text):
        if token.word == _MARK:
            characters[token.start] = " "
    return "".join(characters)
