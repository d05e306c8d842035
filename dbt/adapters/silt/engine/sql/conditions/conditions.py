"""Parses the logical structure of a condition: AND, OR and NOT over comparisons; the rest remains spans of tokens.

The grammar is `booleanExpression` and `predicate` of Spark's SqlBaseParser.g4. Operands are spans, which other modules
evaluate. A condition that does not fit the grammar to its last token has no structure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from dbt.adapters.silt.engine.sql.spans import Tokens, after_value, closings, starts_query_in_parentheses
from dbt.adapters.silt.engine.sql.tokens import Kind


@dataclass(frozen=True)
class Operand:
    """The tokens of a value expression, from `first` up to, not including, `after`, without enclosing parentheses."""

    first: int
    after: int


@dataclass(frozen=True)
class Compared:
    """`left operator right` with an operator among = <=> != < <= > >="""

    operator: str
    left: Operand
    right: Operand


@dataclass(frozen=True)
class Among:
    """`value IN (choices)`"""

    value: Operand
    choices: tuple[Operand, ...]


@dataclass(frozen=True)
class Liked:
    """`value LIKE pattern`, with the usual escape character."""

    value: Operand
    pattern: Operand


@dataclass(frozen=True)
class NullTest:
    """`value IS NULL`"""

    value: Operand


@dataclass(frozen=True)
class Bare:
    """A value used as a condition."""

    value: Operand


@dataclass(frozen=True)
class Opaque:
    """A condition of another kind: the tokens from `first` up to `after`, if known."""

    first: int = field(default=0, compare=False)
    after: int = field(default=0, compare=False)


@dataclass(frozen=True)
class AllOf:
    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class AnyOf:
    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class Negated:
    part: Condition


Condition: TypeAlias = AllOf | AnyOf | Negated | Compared | Among | Liked | NullTest | Bare | Opaque


class _NoStructure(Exception):
    """The text is not a condition of the grammar."""


def structure(tokens: Tokens) -> Condition:
    """Returns the structure of the condition of these tokens, or `Opaque` if it is ambiguous."""
    parser = _Parser(tokens)
    try:
        condition, at = parser.any_of(0)
    except (_NoStructure, RecursionError):
        return Opaque()
    return condition if tokens[at].kind is Kind.END else Opaque()


_COMPARISONS = {
    "=": "=",
    "==": "=",
    "<=>": "<=>",
    "<>": "!=",
    "!=": "!=",
    "<": "<",
    "<=": "<=",
    "!>": "<=",
    ">": ">",
    ">=": ">=",
    "!<": ">=",
}
_NEGATIONS = ("NOT", "!")
_PREDICATES = frozenset(("BETWEEN", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "IS"))
_Step: TypeAlias = tuple[Condition, int]


class _Parser:
    """Parser whose methods take the index of a token, and return the parsed condition and the index after it."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.closings = closings(tokens)

    def any_of(self, at: int) -> _Step:
        first, at = self._all_of(at)
        parts = [first]
        while self.tokens[at].word == "OR":
            part, at = self._all_of(at + 1)
            parts.append(part)
        return (first if len(parts) == 1 else AnyOf(tuple(parts))), at

    def _all_of(self, at: int) -> _Step:
        first, at = self._negated(at)
        parts = [first]
        while self.tokens[at].word == "AND":
            part, at = self._negated(at + 1)
            parts.append(part)
        return (first if len(parts) == 1 else AllOf(tuple(parts))), at

    def _negated(self, at: int) -> _Step:
        if self.tokens[at].word in _NEGATIONS:
            part, at = self._negated(at + 1)
            return Negated(part), at
        return self._predicated(at)

    def _predicated(self, at: int) -> _Step:
        condition, after = self._one(at)
        return (Opaque(at, after) if isinstance(condition, Opaque) else condition), after

    def _one(self, at: int) -> _Step:
        tokens = self.tokens
        if tokens[at].word == "EXISTS" and tokens[at + 1].word == "(":
            return Opaque(), self._behind_group(at + 1)
        start = at
        left, at = self._operand(at)
        if tokens[at].word in _COMPARISONS:
            return self._compared(left, at)
        negated = tokens[at].word in _NEGATIONS and tokens[at + 1].word in _PREDICATES
        at += negated
        if tokens[at].word in _PREDICATES:
            condition, at = self._predicate(left, at)
            return (Negated(condition) if negated else condition), at
        if self.closings.get(start) == at - 1:
            return self._in_parentheses(start), at
        return Bare(left), at

    def _in_parentheses(self, at: int) -> Condition:
        if starts_query_in_parentheses(self.tokens, at):
            return Opaque()
        condition, behind = self.any_of(at + 1)
        if behind != self.closings.get(at):
            raise _NoStructure
        return condition

    def _compared(self, left: Operand, at: int) -> _Step:
        operator = _COMPARISONS[self.tokens[at].word]
        right, at = self._operand(at + 1)
        following = self.tokens[at].word
        if following in _COMPARISONS or following in _PREDICATES or following in _NEGATIONS:
            raise _NoStructure
        return Compared(operator, left, right), at

    def _predicate(self, left: Operand, at: int) -> _Step:
        word = self.tokens[at].word
        if word == "BETWEEN":
            return self._between(left, at + 1)
        if word == "IN":
            return self._in_list(left, at + 1)
        if word == "LIKE" and self.tokens[at + 1].word not in ("ANY", "SOME", "ALL"):
            return self._like(left, at + 1)
        if word == "IS":
            return self._is(left, at + 1)
        if self.tokens[at + 1].word in ("ANY", "SOME", "ALL"):
            return Opaque(), self._behind_group(at + 2)
        _, at = self._operand(at + 1)
        return Opaque(), self._behind_escape(at)

    def _between(self, left: Operand, at: int) -> _Step:
        low, at = self._operand(at)
        if self.tokens[at].word != "AND":
            raise _NoStructure
        high, at = self._operand(at + 1)
        if self.tokens[at].word in _COMPARISONS:
            raise _NoStructure
        return AllOf((Compared(">=", left, low), Compared("<=", left, high))), at

    def _in_list(self, left: Operand, at: int) -> _Step:
        behind = self._behind_group(at)
        if starts_query_in_parentheses(self.tokens, at):
            return Opaque(), behind
        choices: list[Operand] = []
        while self.tokens[at].word in ("(", ","):
            choice, at = self._operand(at + 1)
            choices.append(choice)
        return (Among(left, tuple(choices)) if at == behind - 1 else Opaque()), behind

    def _like(self, left: Operand, at: int) -> _Step:
        pattern, at = self._operand(at)
        behind = self._behind_escape(at)
        return (Liked(left, pattern) if behind == at else Opaque()), behind

    def _is(self, left: Operand, at: int) -> _Step:
        negated = self.tokens[at].word in _NEGATIONS
        at += negated
        word = self.tokens[at].word
        condition: Condition
        if word == "NULL":
            condition, at = NullTest(left), at + 1
        elif word in ("TRUE", "FALSE", "UNKNOWN"):
            condition, at = Opaque(), at + 1
        elif word == "DISTINCT" and self.tokens[at + 1].word == "FROM":
            right, at = self._operand(at + 2)
            condition = Negated(Compared("<=>", left, right))
        else:
            raise _NoStructure
        return (Negated(condition) if negated else condition), at

    def _operand(self, at: int) -> tuple[Operand, int]:
        """Parses a value expression that contains no comparison.

        Raises:
            _NoStructure: if the value expression is missing, or a CASE in it is not closed.
        """
        tokens = self.tokens
        after = after_value(tokens, at)
        words = [token.word for token in tokens[at:after]]
        if not words or words[0] in _NO_OPERAND or words.count("CASE") > words.count("END"):
            raise _NoStructure
        first, last = at, after
        while self.closings.get(first) == last - 1:
            first, last = first + 1, last - 1
        if first >= last:
            raise _NoStructure
        return Operand(first, last), after

    def _behind_group(self, at: int) -> int:
        if at not in self.closings:
            raise _NoStructure
        return self.closings[at] + 1

    def _behind_escape(self, at: int) -> int:
        if self.tokens[at].word != "ESCAPE":
            return at
        if self.tokens[at + 1].kind not in (Kind.STRING, Kind.DOUBLE_QUOTED):
            raise _NoStructure
        return at + 2


_NO_OPERAND = _PREDICATES | frozenset(("AND", "OR", "NOT", "!", *_COMPARISONS))
