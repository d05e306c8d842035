"""Parses the query of a dbt data test: a count of the rows that fail, and dbt's own queries for these rows."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from dbt.adapters.silt.engine.sql.ast import Name
from dbt.adapters.silt.engine.sql.spans import Tokens, after_group
from dbt.adapters.silt.engine.sql.tokens import Kind, tokenize

_COUNT = "count ( * )"
_FRAME = f"select {_COUNT} as <failures> , {_COUNT} <warn> as <should_warn> , {_COUNT} <error> as <should_error> from"
_NOT_NULL = "select <column> from <source> where <column> is null"
_UNIQUE = (
    f"select <column> as unique_field , {_COUNT} as n_records from <source> where <column> is not null "
    f"group by <column> having {_COUNT} > 1"
)
_ACCEPTED = (
    f"with all_values as ( select <column> as value_field , {_COUNT} as n_records from <source> group by <column> ) "
    "select * from all_values where value_field not in <values>"
)
_RELATED = (
    "with child as ( select <column> as from_field from <source> where <column> is not null ) , "
    "parent as ( select <field> as to_field from <parent> ) select from_field from child left join parent "
    "on child . from_field = parent . to_field where parent . to_field is null"
)
_COMPARISONS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_NO_NAMES: Final = frozenset(("ALL", "DISTINCT", "FALSE", "NULL", "TRUE"))


@dataclass(frozen=True)
class Rows:
    """A table, or its rows that meet a condition, and the column whose values the test counts.

    Attributes:
        table: the name, with its schema: a name alone may be that of a common table expression.
        where: the SQL of their condition, if any.
    """

    table: Name
    column: str
    where: str | None = None


@dataclass(frozen=True)
class Comparison:
    """A comparison of the count of failing rows with a number."""

    operator: str
    number: int

    def of(self, count: int) -> bool:
        """Returns the outcome for a count."""
        return _COMPARISONS[self.operator](count, self.number)


@dataclass(frozen=True)
class DataTest:
    """The query of a data test.

    Attributes:
        names: the columns of its result.
        warn, error: the comparisons of the second and the third column.
        failing: the text of the query for the failing rows.
    """

    names: tuple[str, str, str]
    warn: Comparison
    error: Comparison
    failing: str


@dataclass(frozen=True)
class NotNull:
    """Each row without a value fails."""

    rows: Rows


@dataclass(frozen=True)
class Unique:
    """Each value that several rows have fails."""

    rows: Rows


@dataclass(frozen=True)
class Accepted:
    """Each value fails that is not in a list, which is the text of it in parentheses."""

    rows: Rows
    values: str


@dataclass(frozen=True)
class Related:
    """Each row fails whose value no row of the parent has."""

    rows: Rows
    parent: Rows


def data_test(sql: str) -> DataTest | None:
    """Returns the parsed query, or None if it is not the query of a data test that counts rows."""
    found = _Match(sql, tokenize(sql))
    if not found.pattern(_FRAME) or not found.word("("):
        return None
    after = after_group(found.tokens, found.at - 1)
    rest = found.tokens[after:]
    if len(rest) != 2 or not rest[0].is_identifier or after - 1 <= found.at:
        return None
    failing = sql[found.tokens[found.at].start : found.tokens[after - 2].end]
    names, compared = found.names, found.comparisons
    if len({name.lower() for name in names.values()}) != len(names):
        return None
    return DataTest(
        (names["failures"], names["should_warn"], names["should_error"]), compared["warn"], compared["error"], failing
    )


def failing_rows(sql: str) -> NotNull | Unique | Accepted | Related | None:
    """Returns the meaning of dbt's own query for failing rows, or None for any other query."""
    tokens = tokenize(sql)
    for pattern in (_NOT_NULL, _UNIQUE, _ACCEPTED, _RELATED):
        found = _Match(sql, tokens)
        if not found.pattern(pattern) or found.tokens[found.at].kind is not Kind.END:
            continue
        rows = found.rows("source", "column")
        if pattern == _ACCEPTED:
            return Accepted(rows, found.texts["values"])
        if pattern == _RELATED:
            return Related(rows, found.rows("parent", "field"))
        return NotNull(rows) if pattern == _NOT_NULL else Unique(rows)
    return None


@dataclass
class _Match:
    """Compares tokens with a pattern of words and of placeholders in angle brackets, which it fills."""

    sql: str
    tokens: Tokens
    at: int = 0
    names: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    tables: dict[str, tuple[Name, str | None]] = field(default_factory=dict)
    comparisons: dict[str, Comparison] = field(default_factory=dict)

    def pattern(self, pattern: str) -> bool:
        """Returns whether the tokens from here on begin with the pattern, and consumes them if so."""
        parts = pattern.split()
        return all(self._hole(part[1:-1]) if part.startswith("<") else self.word(part) for part in parts)

    def word(self, word: str) -> bool:
        """Consumes a word, a symbol or a number; returns whether it is the next token."""
        token = self.tokens[self.at]
        is_number = token.kind is Kind.NUMBER and token.text == word
        return self._past(token.word == word.upper() or is_number)

    def rows(self, table: str, column: str) -> Rows:
        """Returns the rows of the holes for a table and its column."""
        name, where = self.tables[table]
        return Rows(name, self.names[column], where)

    def _hole(self, hole: str) -> bool:
        if hole in ("source", "parent"):
            return self._table(hole)
        if hole in ("warn", "error"):
            return self._comparison(hole)
        return self._group(hole) if hole == "values" else self._name(hole)

    def _name(self, hole: str) -> bool:
        token = self.tokens[self.at]
        if not token.is_identifier or token.word in _NO_NAMES:
            return False
        return self._past(token.identifier == self.names.setdefault(hole, token.identifier))

    def _comparison(self, hole: str) -> bool:
        sign = self.tokens[self.at].word
        number = self.tokens[self.at + 1].text if sign in _COMPARISONS else ""
        if not number.isascii() or not number.isdecimal() or len(number) > 9:
            return False
        self.comparisons[hole] = Comparison(sign, int(number))
        self.at += 2
        return True

    def _group(self, hole: str) -> bool:
        if self.tokens[self.at].word != "(":
            return False
        first, self.at = self.at, after_group(self.tokens, self.at)
        self.texts[hole] = self._text(first, self.at)
        return self.tokens[self.at - 1].word == ")"

    def _table(self, hole: str) -> bool:
        """Consumes a table, or its rows under the config `where`, with the alias that dbt gives them."""
        first = self.at
        if not self.word("("):
            return self._path(hole)
        after = after_group(self.tokens, first)
        is_cut = self.pattern("select * from") and self._path(hole) and self.word("where")
        if not is_cut or self.at >= after - 1:
            return False
        self.tables[hole] = (self.tables[hole][0], self._text(self.at, after - 1))
        self.at = after
        return self.word("dbt_subquery")

    def _path(self, hole: str) -> bool:
        parts: list[str] = []
        while self.tokens[self.at].is_identifier:
            parts.append(self.tokens[self.at].identifier)
            self.at += 1
            if not self.word("."):
                break
        self.tables[hole] = (tuple(parts), None)
        return len(parts) in (2, 3) and self.tokens[self.at - 1].is_identifier

    def _past(self, matches: bool) -> bool:
        self.at += matches
        return matches

    def _text(self, first: int, after: int) -> str:
        return self.sql[self.tokens[first].start : self.tokens[after - 1].end]
