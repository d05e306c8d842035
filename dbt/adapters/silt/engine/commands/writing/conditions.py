"""Rejects conditions of a statement that are not boolean, before any part of the statement runs.

Spark rejects them, too, but with a plan that the author of the statement does not know. A condition that is only NULL
has no type. It is cast to boolean and so never true, as in Spark's MERGE and DELETE.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, NullType

from dbt.adapters.silt.engine.commands.spark.failures.texts import without_own_names
from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError
from dbt.adapters.silt.engine.sql.tokens import Kind, Token, tokenize

_OPEN: Final = frozenset(("(", "[", "CASE"))
_CLOSE: Final = frozenset((")", "]", "END"))
_OF_CONDITIONS: Final = frozenset(
    ("=", "==", "<=>", "<", ">", "<=", ">=", "<>", "!=", "!<", "!>", "!", "AND", "OR", "NOT", "IN", "IS", "LIKE")
) | frozenset(("ILIKE", "RLIKE", "REGEXP", "BETWEEN", "EXISTS", "TRUE", "FALSE"))
"""Operators and words with a boolean result that bind more loosely than all other operators."""


def checked(condition: str, what: str, rows: Callable[[], DataFrame], table: str) -> str:
    """Returns the SQL of a condition that is known to be boolean.

    Args:
        what: the condition as the subject of a sentence, such as "the condition of WHERE".
        rows: returns rows with the names that the condition may use. They are analysed, never run, and only if the SQL
            alone does not prove the type.
        table: the table of the statement.

    Raises:
        InvalidStatementError: if the condition is of another type.
    """
    if is_surely_boolean(condition):
        return condition
    # The line break ends a comment at the condition's end.
    found = rows().select(F.expr(f"({condition}\n)")).schema.fields[0].dataType
    if isinstance(found, NullType):
        return f"cast(({condition}\n) as boolean)"
    if not isinstance(found, BooleanType):
        raise InvalidStatementError(
            f"{what}, {without_own_names(condition.strip())}, is of type {found.simpleString()}, not boolean",
            remedy="Correct the condition: compare the value with another one",
            table=table,
        )
    return condition


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
