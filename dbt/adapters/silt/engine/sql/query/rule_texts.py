"""Finds forbidden parts of a table's rules (a default, a condition, a generated column).

A table's log may come from elsewhere, and its rules run as the user who writes. So everything but an expression over
the row, of Spark's own functions, is refused: subqueries, scripts, reflection, and variables `${...}`.
"""

from __future__ import annotations

from functools import lru_cache

from dbt.adapters.silt.engine.sql.query.rule_functions import DETERMINISTIC, OF_CHANCE
from dbt.adapters.silt.engine.sql.spans import Tokens, closing
from dbt.adapters.silt.engine.sql.tokens import Kind, tokenize

_STARTS = frozenset(("WITH", "FROM", "VALUES", "TABLE", "MAP", "REDUCE"))
_AFTER_A_NAME = frozenset(") , . = == <=> <> != < > <= >= !< !> / % & | ^ || [ ::".split())
_BEFORE_PARENTHESES = frozenset(
    "AND OR NOT IN THEN ELSE WHEN CASE BETWEEN LIKE ILIKE RLIKE REGEXP ANY SOME ALL FROM FOR PLACING DIV ESCAPE BOTH "
    "LEADING TRAILING IS".split()
)
_TYPES = frozenset(("CHARACTER", "VARCHAR", "DEC", "NUMERIC", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ"))


@lru_cache(maxsize=1024)
def problem(text: str, with_chance: bool = False) -> str | None:
    """Returns the forbidden part of a rule's text, if any.

    Args:
        with_chance: whether it may differ from row to row, as a default may.

    Raises:
        StatementSyntaxError: as raised by `tokenize`.
    """
    if "${" in text:
        return "a variable `${...}`"
    tokens = tokenize(f"({text}\n)")
    if closing(tokens, 0) != len(tokens) - 2:
        return "parentheses that do not match"
    allowed = DETERMINISTIC | OF_CHANCE if with_chance else DETERMINISTIC
    return next((found for at in range(len(tokens)) if (found := _at(tokens, at, allowed))), None)


def _at(tokens: Tokens, at: int, allowed: frozenset[str]) -> str | None:
    token = tokens[at]
    if token.word in ("SELECT", "USING"):
        return "a query"
    if token.word == "(":
        return _query(tokens, at)
    if token.is_identifier and tokens[at + 1].word == "(":
        return _call(tokens, at, allowed)
    if token.kind is Kind.DOUBLE_QUOTED and tokens[at + 1].word == "(":
        return f"the function {token.text}"
    return None


def _query(tokens: Tokens, at: int) -> str | None:
    """Returns "a query" if a query begins after the parenthesis; a column may have the name of its first word."""
    first, following = tokens[at + 1], tokens[at + 2] if at + 2 < len(tokens) else tokens[-1]
    if first.word not in _STARTS or following.word in _AFTER_A_NAME:
        return None
    # A script of MAP and REDUCE also contains the word USING.
    if first.word in ("MAP", "REDUCE") or (first.word == "FROM" and tokens[at - 1].word == "TRIM"):
        return None
    return "a query"


def _call(tokens: Tokens, at: int, allowed: frozenset[str]) -> str | None:
    name = tokens[at].identifier.lower()
    if tokens[at - 1].word == ".":
        prefix = [each.identifier.lower() for each in tokens[max(0, at - 4) : at - 1 : 2] if each.is_identifier]
        return None if prefix == ["system", "builtin"] and name in allowed else f"the function `{name}` of a schema"
    if name in allowed or tokens[at].word in _BEFORE_PARENTHESES or _is_type(tokens, at):
        return None
    return f"the function `{name}`"


def _is_type(tokens: Tokens, at: int) -> bool:
    inside = tokens[at + 2 : closing(tokens, at + 1)]
    return tokens[at].word in _TYPES and all(each.kind is Kind.NUMBER or each.word == "," for each in inside)


def one_line(text: str) -> str:
    """Returns an expression for a message: on a single line, without comments; strings in it keep their escapes.

    Raises:
        StatementSyntaxError: as raised by `tokenize`.
    """
    tokens = tokenize(text)
    shown, end = [], tokens[0].start
    for token in tokens[:-1]:
        gap = text[end : token.start]
        shown += [gap if gap.strip(" ") == "" else " ", token.text.replace("\n", "\\n")]
        end = token.end
    return "".join(shown)
