"""Finds the likely mistake in SQL that cannot be parsed: a comma, a keyword, or the syntax of another platform."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from dbt.adapters.silt.engine.kernel.errors import StatementSyntaxError
from dbt.adapters.silt.engine.sql.tokens import Kind, Token, tokenize

_NUMBER: Final = "<number>"
_ELSEWHERE: Final[Mapping[tuple[str, ...], str]] = {
    ("*", "EXCLUDE", "("): "In Spark, write `* except (...)`",
    ("SELECT", "TOP", _NUMBER): "In Spark, write `limit` at the end of the query",
    ("LIMIT", _NUMBER, ",", _NUMBER): "In Spark, write `limit count offset start`",
    ("FETCH", "FIRST", _NUMBER): "In Spark, write `limit`",
    ("FETCH", "NEXT", _NUMBER): "In Spark, write `limit`",
    ("DOUBLE", "PRECISION"): "In Spark, the type is `double`",
    ("CHARACTER", "VARYING"): "In Spark, the type is `varchar(n)`, or `string` for any length",
    ("WITH", "TIME", "ZONE"): "In Spark, the type is `timestamp`",
    ("AT", "TIME", "ZONE"): "In Spark, write `convert_timezone('from zone', 'to zone', t)`",
    ("SIMILAR", "TO"): "In Spark, write `rlike`",
    ("SAFE_CAST", "("): "In Spark, write `try_cast(x as type)`",
}
"""The remedies for the syntax of other platforms, which Spark cannot parse, by the words that begin it."""

_AFTER_LISTS: Final = frozenset("FROM WHERE HAVING UNION INTERSECT QUALIFY".split())
_WITH_BY: Final = frozenset(("GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE"))
_AFTER_A_COLUMN: Final = frozenset(("AS", "(", ")", ",", ".", "FROM", ""))
_CLOSING: Final = frozenset((")", ",", ";"))
_KEYWORDS: Final[Mapping[str, str]] = {
    **{word: word for word in ("select", "from", "where", "having", "limit", "join", "union", "qualify")},
    **{f"{word}{by}": f"{word} by" for word in ("group", "order") for by in ("", "by")},
}
_BEGINNINGS: Final = (
    "select with insert update delete merge create drop alter describe show truncate optimize vacuum restore".split()
)
_SIMILAR: Final = 0.75


def remedy(sql: str, at: str = "") -> str | None:
    """Returns the remedy for the likely mistake in a text that Spark cannot parse, if it is known.

    Args:
        sql: the text.
        at: the text at which Spark's parser stopped, if it is known.
    """
    try:
        tokens = tokenize(sql)
    except StatementSyntaxError:
        return None
    if at == "~":
        return "In Spark, write `rlike` for a regular expression"
    if at == "{":
        return "In Spark, write a struct as `named_struct('a', 1)`, and a map as `map('a', 1)`"
    if tokens[0].text == at and (meant := near_beginning(at)) not in (None, at.lower()):
        return f"Did you mean `{meant}` instead of `{at}`?"
    if at == "[":
        return "In Spark, write a name that needs quotes in backticks, and an array as `array(...)`"
    return _of_another_platform(tokens) or comma_remedy(tokens) or _of_a_keyword(tokens, at)


def comma_remedy(tokens: Sequence[Token]) -> str | None:
    """Returns the remedy for a comma at the end of a list, if a list ends with a comma."""
    for at, token in enumerate(tokens[:-1], start=1):
        if token.word == "," and _ends_a_list(tokens, at):
            place = "at the end" if tokens[at].kind is Kind.END else f"before `{tokens[at].text}`"
            return f"Remove the comma {place}, or add what is missing after it"
    return None


def _ends_a_list(tokens: Sequence[Token], at: int) -> bool:
    """Returns whether no list can continue with a token, which follows a comma."""
    token, later = tokens[at], tokens[min(at + 1, len(tokens) - 1)]
    if token.kind is Kind.END or token.word in _CLOSING:
        return True
    if token.word in _WITH_BY:
        return later.word == "BY"
    if token.word == "LIMIT":
        return later.kind is Kind.NUMBER
    if token.word == "SELECT":
        is_in_with = at > 1 and tokens[at - 2].word == ")" and any(each.word == "WITH" for each in tokens[:at])
        return is_in_with and later.word not in _AFTER_A_COLUMN
    return token.word in _AFTER_LISTS and (later.is_identifier or later.word == "(") and later.word not in _AFTER_LISTS


_ELEMENTS: Final = frozenset(("UNNEST", "EXPLODE", "POSEXPLODE", "INLINE", "FLATTEN", "GENERATE_SUBSCRIPTS"))


def lateral_remedy(sql: str) -> str | None:
    """Returns the remedy for a query that joins the elements of a table's column without LATERAL, if it does so."""
    try:
        tokens = tokenize(sql)
    except StatementSyntaxError:
        return None
    for at in range(1, len(tokens) - 1):
        if tokens[at].word in _ELEMENTS and tokens[at + 1].word == "(" and _is_joined(tokens[:at]):
            return "For each element of an array in a column, write `cross join lateral explode(a) as t(x)`"
    return None


def _is_joined(before: Sequence[Token]) -> bool:
    """Returns whether the next token joins a table to those before it, without LATERAL."""
    if before[-1].word == "(":
        before = before[:-2] if before[-2:-1] and before[-2].word == "TABLE" else ()
    if not before or before[-1].word not in ("JOIN", ","):
        return False
    depth = 0
    for token in reversed(before):
        depth += (token.word == ")") - (token.word == "(")
        if depth < 0:
            return False
        if depth == 0 and token.word in ("FROM", "SELECT"):
            return token.word == "FROM"
    return False


def _of_another_platform(tokens: Sequence[Token]) -> str | None:
    words = [_NUMBER if token.kind is Kind.NUMBER else token.word for token in tokens]
    for start in range(len(words)):
        for beginning, what in _ELSEWHERE.items():
            if tuple(words[start : start + len(beginning)]) == beginning:
                return what
    return None


def _of_a_keyword(tokens: Sequence[Token], at: str) -> str | None:
    """Returns the remedy if the parser stopped after a misspelt keyword that the text does not contain otherwise."""
    words = {token.word for token in tokens}
    for before, token in pairwise(tokens):
        if token.text == at and before.kind is Kind.WORD:
            meant = near_keyword(before.text)
            if meant is not None and meant.partition(" ")[0].upper() not in words:
                return f"Did you mean `{meant}` instead of `{before.text}`?"
    return None


def near_keyword(word: str) -> str | None:
    """Returns the keyword that a misspelt word resembles, if any; a keyword itself resembles no other."""
    near = difflib.get_close_matches(word.lower(), list(_KEYWORDS), 1, _SIMILAR)
    return _KEYWORDS[near[0]] if near and word.upper() != _KEYWORDS[near[0]].partition(" ")[0].upper() else None


def near_beginning(word: str) -> str | None:
    """Returns the first word of a statement that a misspelt word resembles, if any."""
    near = difflib.get_close_matches(word.lower(), _BEGINNINGS, 1, _SIMILAR)
    return near[0] if near else None
