"""Recognises the form of conditions from their SQL, without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dbt.adapters.silt.engine.sql.tokens import Kind, Token, tokenize

_OPEN: Final = frozenset(("(", "[", "CASE"))
_CLOSE: Final = frozenset((")", "]", "END"))
_OF_CONDITIONS: Final = frozenset(
    ("=", "==", "<=>", "<", ">", "<=", ">=", "<>", "!=", "!<", "!>", "!", "AND", "OR", "NOT", "IN", "IS", "LIKE")
) | frozenset(("ILIKE", "RLIKE", "REGEXP", "BETWEEN", "EXISTS", "TRUE", "FALSE"))
"""Operators and words with a boolean result that bind more loosely than all other operators."""


def is_surely_boolean(text: str) -> bool:
    """Returns whether an expression, if valid, is of type boolean; False if the text does not determine it."""
    return _is_boolean([token for token in tokenize(text) if token.kind is not Kind.END])


def _is_boolean(tokens: Sequence[Token]) -> bool:
    depths = _depths(tokens)
    outside = (
        token.word
        for at, (token, depth) in enumerate(zip(tokens, depths, strict=True))
        if depth == 0 and not (at and tokens[at - 1].word == ".")
    )
    if any(word in _OF_CONDITIONS for word in outside):
        return True
    is_enclosed = len(tokens) > 2 and tokens[0].word == "(" and all(depths[:-1])
    return is_enclosed and tokens[-1].word == ")" and _is_boolean(tokens[1:-1])


def _depths(tokens: Sequence[Token]) -> list[int]:
    """Returns the nesting depth of each token in brackets and CASEs; openers count as inside, closers as outside."""
    depths, depth = [], 0
    for token in tokens:
        depth += (token.word in _OPEN) - (token.word in _CLOSE)
        depths.append(depth)
    return depths
