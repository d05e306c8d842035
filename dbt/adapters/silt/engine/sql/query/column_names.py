"""Finds and qualifies the columns that an expression names, outside of its subqueries and lambdas' parameters."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from dbt.adapters.silt.engine.kernel.errors import ColumnNotFoundError, StatementSyntaxError
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.sql.ast import Name
from dbt.adapters.silt.engine.sql.spans import Tokens, after_group, closing, starts_query
from dbt.adapters.silt.engine.sql.tokens import Kind, tokenize


@dataclass(frozen=True)
class ColumnName:
    """A bare or dotted name: its parts, and its span of the text. `has_star` distinguishes `name.*` from `name`."""

    parts: Name
    start: int
    end: int
    has_star: bool = False

    @property
    def is_dotted(self) -> bool:
        return len(self.parts) > 1 or self.has_star


def column_names(tokens: Tokens) -> tuple[ColumnName, ...]:
    """Returns the columns named by the tokens of an expression, in the order of the text; empty for a query."""
    return () if starts_query(tokens, 0) else tuple(_Reader(tokens).read())


class _State(Enum):
    """The interpretation of the next token."""

    OPERAND = "an operand, or a word before an operand"
    OPERATOR = "an operator, or the end of an operand"
    MEMBER = "a name after a dot or a colon, which is not a column"


@dataclass
class _Group:
    """The innermost parentheses or brackets: the word before them, and the parameters of the lambda in them."""

    called: str
    parameters: frozenset[str] = field(default_factory=frozenset)


_SYMBOLS_BEFORE_OPERAND = frozenset("= == <=> <> != < <= > >= !< !> + - * / % || & | ^ << ~ ! , => ->".split())
_WORDS_BEFORE_OPERAND = frozenset(
    "AND OR IN LIKE ILIKE RLIKE REGEXP BETWEEN WHEN THEN ELSE DIV FROM FOR BY PLACING ESCAPE".split()
)
# Before an operand, or in its place, these words never name a column.
_PREFIXES = frozenset(("NOT", "CASE", "WHEN", "WHERE", "DISTINCT", "ALL"))
_IN_TRIM = frozenset(("BOTH", "LEADING", "TRAILING", "FROM"))
_BEFORE_IN_TRIM = _IN_TRIM | {"("}
_VALUES = frozenset("NULL TRUE FALSE CURRENT_DATE CURRENT_TIMESTAMP CURRENT_TIME CURRENT_USER".split())
_SYMBOLS_AFTER_OPERAND = (_SYMBOLS_BEFORE_OPERAND - {"~", "=>", "->"}) | frozenset((")", "]", "[", ".", ":", "::"))
_WORDS_AFTER_OPERAND = (_WORDS_BEFORE_OPERAND - {"BY"}) | frozenset(
    "NOT IS END AS COLLATE ASC DESC NULLS ORDER ROWS RANGE".split()
)
_CASTS = frozenset(("CAST", "TRY_CAST"))
_TYPES_OF_TYPES = frozenset(("ARRAY", "MAP", "STRUCT"))
_TAKES_A_UNIT = frozenset("TIMESTAMPADD DATEADD DATE_ADD TIMESTAMPDIFF DATEDIFF DATE_DIFF TIMEDIFF".split())
_UNITS = frozenset("YEAR QUARTER MONTH WEEK DAY DAYOFYEAR HOUR MINUTE SECOND MILLISECOND MICROSECOND".split())


class _Reader:
    """Reads the tokens from left to right; every method advances the position."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.at = 0
        self.state = _State.OPERAND
        self.groups = [_Group("")]

    def read(self) -> Iterator[ColumnName]:
        while self.tokens[self.at].kind is not Kind.END:
            if not self.tokens[self.at].is_identifier:
                self._symbol()
            elif self.state is _State.OPERAND:
                yield from self._operand()
            else:
                self._word_after_operand()

    def _step(self, state: _State, count: int = 1) -> None:
        self.at = min(self.at + count, len(self.tokens) - 1)
        self.state = state

    # Symbols and literals

    def _symbol(self) -> None:
        word = self.tokens[self.at].word
        if word in ("(", "["):
            self._open()
        elif word in (")", "]"):
            if len(self.groups) > 1:
                self.groups.pop()
            self._step(_State.OPERATOR)
        elif word == "::":
            self.at += 1
            self._type()
        elif word in (".", ":"):
            self._step(_State.MEMBER)
        elif word == "*" and self.state is _State.OPERAND:
            self._step(_State.OPERATOR)
        elif word == "!" and self.state is _State.OPERATOR:
            self._step(_State.OPERATOR)  # `a ! in (...)`
        elif word in _SYMBOLS_BEFORE_OPERAND:
            if word == ",":
                self.groups[-1].parameters = frozenset()
            self._step(_State.OPERAND)
        else:
            self._step(self.state if self.tokens[self.at].kind is Kind.HINT else _State.OPERATOR)

    def _open(self) -> None:
        before = self.tokens[self.at - 1].word if self.at else ""
        last = closing(self.tokens, self.at) if self.tokens[self.at].word == "(" else self.at
        if self.tokens[last + 1 : last + 2] and self.tokens[last + 1].word == "->":
            names = (token.identifier.lower() for token in self.tokens[self.at : last] if token.is_identifier)
            self._lambda(frozenset(names), last)
        elif last > self.at and before != "TRIM" and starts_query(self.tokens, self.at + 1):
            self.at = last
            self._step(_State.OPERATOR)
        else:
            self.groups.append(_Group(before))
            self._step(_State.OPERAND)

    def _lambda(self, parameters: frozenset[str], last: int) -> None:
        """Steps past the arrow; up to the next comma or the end of the group, the parameters hide columns."""
        self.groups[-1].parameters = parameters
        self.at = last + 1
        self._step(_State.OPERAND)

    # Words

    def _operand(self) -> Iterator[ColumnName]:
        token, following = self.tokens[self.at], self.tokens[self.at + 1]
        if following.word == "->":
            self._lambda(frozenset((token.identifier.lower(),)), self.at)
        elif token.word in _PREFIXES or self._is_of_trim() or self._is_interval():
            self._step(_State.OPERAND)
        elif token.word in _VALUES or self._is_unit():
            self._step(_State.OPERATOR)
        else:
            yield from self._name()

    def _name(self) -> Iterator[ColumnName]:
        """Yields a complete dotted name, unless it is a function's or a parameter's."""
        tokens, first = self.tokens, self.at
        while tokens[self.at + 1].word == "." and tokens[self.at + 2].is_identifier:
            self.at += 2
        found = tokens[first : self.at + 1 : 2]
        has_star = tokens[self.at + 1].word == "." and tokens[self.at + 2].word == "*"
        self._step(_State.OPERATOR, 3 if has_star else 1)
        name = ColumnName(tuple(token.identifier for token in found), found[0].start, tokens[self.at - 1].end, has_star)
        is_parameter = any(name.parts[0].lower() in group.parameters for group in self.groups)
        if not is_parameter and self._may_follow_operand(is_sure=name.is_dotted):
            yield name

    def _may_follow_operand(self, is_sure: bool) -> bool:
        """Returns whether the next token can follow a column; after a dotted name, any token but arguments can."""
        following = self.tokens[self.at]
        if following.kind is Kind.END:
            return True
        if is_sure:
            return following.word not in ("(", "=>")
        known = _SYMBOLS_AFTER_OPERAND if following.kind is Kind.SYMBOL else _WORDS_AFTER_OPERAND
        return bool(following.word) and following.word in known

    def _is_of_trim(self) -> bool:
        """Returns whether it is a keyword of TRIM([side] [characters] FROM text)."""
        before = self.tokens[self.at - 1].word
        return self.groups[-1].called == "TRIM" and self.tokens[self.at].word in _IN_TRIM and before in _BEFORE_IN_TRIM

    def _is_interval(self) -> bool:
        following = self.tokens[self.at + 1]
        is_amount = following.kind in (Kind.NUMBER, Kind.STRING, Kind.DOUBLE_QUOTED) or following.word in ("-", "+")
        return self.tokens[self.at].word == "INTERVAL" and is_amount

    def _is_unit(self) -> bool:
        """Returns whether it is the first argument of EXTRACT(unit FROM ...), or of a ternary function with a unit."""
        called, before = self.groups[-1].called, self.tokens[self.at - 1].word if self.at else ""
        if before != "(" or self.tokens[self.at].word == "":
            return False
        if called == "EXTRACT":
            return self.tokens[self.at + 1].word == "FROM"
        return called in _TAKES_A_UNIT and self.tokens[self.at].word in _UNITS and self._commas_ahead() >= 2

    def _commas_ahead(self) -> int:
        """Returns the number of remaining commas of this group, without nested groups."""
        at, count = self.at, 0
        while self.tokens[at].word != ")" and self.tokens[at].kind is not Kind.END:
            count += self.tokens[at].word == ","
            at = after_group(self.tokens, at) if self.tokens[at].word == "(" else at + 1
        return count

    def _word_after_operand(self) -> None:
        word = self.tokens[self.at].word if self.state is _State.OPERATOR else ""
        if word == "AS":
            self._skip_alias_or_type()
        else:
            self._step(_State.OPERAND if word in _WORDS_BEFORE_OPERAND else _State.OPERATOR)

    def _skip_alias_or_type(self) -> None:
        """Steps past an alias, or the type of a cast."""
        self.at += 1
        if self.groups[-1].called in _CASTS:
            self._type()
        elif self.tokens[self.at].is_identifier:
            self._step(_State.OPERATOR)

    def _type(self) -> None:
        """Steps past a type, which may contain names of fields."""
        has_members = self.tokens[self.at].word in _TYPES_OF_TYPES and self.tokens[self.at + 1].word == "<"
        if self.tokens[self.at].is_identifier:
            self._step(_State.OPERATOR)
        if has_members:
            self._type_members()
        self.state = _State.OPERATOR

    def _type_members(self) -> None:
        depth = 0
        while self.tokens[self.at].kind is not Kind.END:
            word = self.tokens[self.at].word
            depth += {"<": 1, ">": -1, ">=": -1}.get(word, 0)
            self.at += 1
            if depth == 0:
                break


@dataclass(frozen=True)
class Scope:
    """The only table whose columns an expression sees.

    Args:
        alias: qualifier of the table's columns.
        columns: the table's columns.
        other: alias of an invisible table.
        clause: the kind of clause, for messages.
    """

    alias: str
    columns: Collection[str]
    other: str
    clause: str

    def qualify(self, text: str) -> str:
        """Returns the expression with the alias before the bare names of the table's columns.

        A text that is not an expression is unchanged, and so is a word that may not be a column: Spark, which reads the
        result, then refuses the name if it is ambiguous.

        Raises:
            ColumnNotFoundError: if it names a column of the other table.
        """
        try:
            names = column_names(tokenize(text))
        except StatementSyntaxError:
            return text
        for name in reversed([name for name in names if self._is_bare(name, text)]):
            text = f"{text[: name.start]}{quote(self.alias)}.{text[name.start :]}"
        return text

    def _is_bare(self, name: ColumnName, text: str) -> bool:
        """Returns whether the name is a column of the table, without the qualifier."""
        first = name.parts[0].lower()
        if name.is_dotted and first == self.alias.lower():
            return False
        if name.is_dotted and first == self.other.lower():
            raise ColumnNotFoundError(f"{self.clause} cannot refer to {text[name.start : name.end]}")
        return first in self._folded_columns

    @cached_property
    def _folded_columns(self) -> frozenset[str]:
        return frozenset(column.lower() for column in self.columns)
