"""Finds the keywords that open the parts of a SELECT: its relations, their conditions and its clauses."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.silt.engine.sql.spans import Tokens, is_column_name
from dbt.adapters.silt.engine.sql.tokens import Kind

_CLAUSES = frozenset("SELECT WHERE HAVING LIMIT OFFSET WINDOW QUALIFY MAP REDUCE |>".split())
_CLAUSES_WITH_BY = frozenset("GROUP ORDER SORT CLUSTER DISTRIBUTE".split())
BEFORE_JOIN = frozenset("NATURAL INNER CROSS LEFT RIGHT FULL OUTER SEMI ANTI".split())
"""The words that lead to JOIN."""
_CONDITIONS = frozenset(("ON", "USING"))
_PIVOTS = frozenset(("PIVOT", "UNPIVOT"))
_PARTS = _CLAUSES | _CLAUSES_WITH_BY | _CONDITIONS | _PIVOTS | {"FROM", ","}
# Words after a relation that are not its alias.
_NO_ALIAS = (_CLAUSES | BEFORE_JOIN | _CONDITIONS | _PIVOTS) - {"OUTER"} | frozenset(
    "FROM JOIN EXCEPT INTERSECT MINUS UNION LATERAL TABLESAMPLE WITH SET VALUES INSERT WHEN".split()
)
# Words after a row of VALUES.
AFTER_ROW = _PARTS | BEFORE_JOIN | {"JOIN", ")", "AS"}


@dataclass(frozen=True)
class Part:
    """A part of a SELECT: its keywords begin at the token `at`, and `first` is the token after them.

    It ends before the next part, or with the SELECT.
    """

    keyword: str
    at: int
    first: int

    @property
    def has_relation(self) -> bool:
        """Whether it begins with a relation of the FROM list."""
        return self.keyword in ("FROM", ",") or self.keyword.endswith("JOIN")

    @property
    def is_condition(self) -> bool:
        """Whether it is the join condition of the relation before it."""
        return self.keyword in _CONDITIONS

    @property
    def is_clause(self) -> bool:
        """Whether it ends the FROM list."""
        return not (self.has_relation or self.is_condition or self.keyword in _PIVOTS)


def part_at(tokens: Tokens, at: int) -> Part | None:
    """Returns the part that begins here, if any; every comma is treated as a comma of a FROM list."""
    word, following = tokens[at].word, tokens[at + 1].word
    if at > 1 and tokens[at - 1].word == "." and tokens[at - 2].word in (")", "]"):  # a field
        return None
    if word in BEFORE_JOIN or word == "JOIN":
        return _join(tokens, at)
    if word == "LATERAL" and following == "VIEW":
        return Part(word, at, at + 2)
    is_name = (word in _CLAUSES_WITH_BY and following != "BY") or _is_distinct_from(tokens, at)
    is_name = is_name or (word == "FROM" and is_column_name(tokens, at))
    return Part(word, at, at + 1) if word in _PARTS and not is_name else None


def is_alias(tokens: Tokens, at: int) -> bool:
    """Returns whether the word after a relation is its alias."""
    token = tokens[at]
    if token.kind is not Kind.WORD:
        return token.kind is Kind.QUOTED
    if token.word in _CLAUSES_WITH_BY:
        return tokens[at + 1].word != "BY"
    return token.word not in _NO_ALIAS


def _join(tokens: Tokens, at: int) -> Part | None:
    """Returns the part of words such as LEFT OUTER that lead to JOIN; LEFT(a, 2) is a function."""
    first = at
    while tokens[first].word in BEFORE_JOIN:
        first += 1
    if tokens[first].word != "JOIN" or is_column_name(tokens, first):
        return None
    return Part(" ".join(token.word for token in tokens[at : first + 1]), at, first + 1)


def _is_distinct_from(tokens: Tokens, at: int) -> bool:
    """Returns whether this FROM belongs to IS [NOT] DISTINCT FROM."""
    words = [token.word for token in tokens[max(0, at - 3) : at]]
    return tokens[at].word == "FROM" and (words[-2:] == ["IS", "DISTINCT"] or words == ["IS", "NOT", "DISTINCT"])
