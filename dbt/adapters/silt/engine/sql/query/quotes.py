"""Converts quoted text between the quoting settings of a Spark session and a form for every session.

Three settings change the meaning of quoted text. The settings of a session determine how quotes in its statements are
read. Stored SQL (the query of a view, the body of a function, a default, the condition of a constraint) is kept in
Spark's default form, which other readers of the table expect, and is written for each session that it runs in.

Source: Spark's SqlBaseParser.g4 (`stringLit`, `quotedIdentifier`) and AstBuilder.createString: `escapedStringLiterals`
only affects constants of expressions; a comment, a path, a typed literal such as DATE '...' and the character of ESCAPE
are always unescaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from dbt.adapters.silt.engine.kernel.identifiers import quote, string_literal
from dbt.adapters.silt.engine.sql.query import table_functions
from dbt.adapters.silt.engine.sql.spans import Edit, closing, edited
from dbt.adapters.silt.engine.sql.tokens import Kind, Token, string_value, tokenize, without_byte_order_marks


@dataclass(frozen=True)
class Quotes:
    """The interpretation of quoted text in a session; the defaults are Spark's.

    Attributes:
        double_quoted_identifiers: whether "x" is a name, not a string.
        escaped_string_literals: whether a backslash in a constant is a backslash, and two quotes are two quotes.
        consecutive_string_literals: otherwise, whether 'it''s' is 'it' followed by 's'.
    """

    double_quoted_identifiers: bool = False
    escaped_string_literals: bool = False
    consecutive_string_literals: bool = False

    def value(self, constant: Token) -> str:
        """Returns the value of a string constant in an expression."""
        if self.escaped_string_literals:
            return constant.text[1:-1]
        return string_value(constant, doubled_is_one=not self.consecutive_string_literals)

    def constant(self, value: str) -> str:
        """Returns an expression with that value: a string if the session has a string for it."""
        quoted = (f"'{value}'", string_literal(value), *(() if self.double_quoted_identifiers else (f'"{value}"',)))
        return next((text for text in quoted if self._reads(text, value)), _bytes_of(value))

    def _reads(self, text: str, value: str) -> bool:
        found = _STRING.fullmatch(text)
        return found is not None and self.value(Token(Kind.STRING, text, "", 0, len(text))) == value


SPARKS_DEFAULT = Quotes()


def as_read(text: str, quotes: Quotes) -> str:
    """Returns a session's statement in this engine's form: names in backquotes, without byte order marks.

    The arguments of the table functions that the engine itself answers get their stored form.

    Raises:
        StatementSyntaxError: as raised by `tokenize`.
    """
    text = without_byte_order_marks(text)
    if quotes == SPARKS_DEFAULT:
        return text
    names = _names_in_double_quotes(text) if quotes.double_quoted_identifiers else []
    return edited(text, [*names, *_as_at_rest(text, quotes, _Use.OWN)])


def at_rest(text: str, quotes: Quotes) -> str:
    """Converts a result of `as_read` to the stored form, Spark's default.

    Raises:
        StatementSyntaxError: as raised by `tokenize`.
    """
    if quotes == SPARKS_DEFAULT:
        return text
    return edited(text, _as_at_rest(text, quotes, _Use.CONSTANT))


def for_session(text: str, quotes: Quotes) -> str:
    """Converts stored SQL to the form of a session.

    Raises:
        StatementSyntaxError: as raised by `tokenize`.
    """
    if quotes == SPARKS_DEFAULT or not _SPECIAL.search(text):
        return text
    changed = (
        each.becomes(quotes.constant(each.value(SPARKS_DEFAULT)))
        for each in _strings(text, _Use.CONSTANT)
        if (each.is_double_quoted and quotes.double_quoted_identifiers)
        or each.value(quotes) != each.value(SPARKS_DEFAULT)
    )
    return edited(text, [*changed, *_unescaped_always(text)])


@lru_cache(maxsize=256)
def for_any_session(text: str) -> str:
    """Converts stored SQL to a form with the same meaning in every session; names that Spark derives may differ.

    Raises:
        StatementSyntaxError: as raised by `tokenize`.
    """
    if not _SPECIAL.search(text):
        return text
    special = (each for each in _strings(text, _Use.CONSTANT) if not each.is_plain)
    changed = (each.becomes(constant(each.value(SPARKS_DEFAULT))) for each in special)
    return edited(text, [*changed, *_unescaped_always(text)])


def without_quoted(text: str) -> str:
    """Returns the text with an empty string in place of each string and each quoted name."""
    quoted = (token for token in tokenize(text) if token.kind in (*_STRINGS, Kind.QUOTED))
    return edited(text, [Edit(token.start, token.end, "''") for token in quoted])


def constant(value: str) -> str:
    """Returns an expression with that value under any settings of the session."""
    return _bytes_of(value) if "'" in value or "\\" in value else f"'{value}'"


_SPECIAL = re.compile(r"[\\\"]|''|[rR]'")
_STRING = re.compile(r"'[^'\\]*(?:(?:\\.|'')[^'\\]*)*'|\"[^\"\\]*(?:(?:\\.|\"\")[^\"\\]*)*\"", re.DOTALL)
_BEFORE_A_TYPED_LITERAL = frozenset(
    ("ESCAPE", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "INTERVAL", "X")
)
_STRINGS = (Kind.STRING, Kind.DOUBLE_QUOTED)


class _Use(Enum):
    CONSTANT = "a constant of an expression"
    TYPED = "a part of a literal, always unescaped"
    OWN = "an argument of a table function that the engine itself answers"


@dataclass(frozen=True)
class _Strings:
    """Adjacent strings, which form a single string."""

    tokens: tuple[Token, ...]
    use: _Use

    def value(self, quotes: Quotes) -> str:
        return "".join(map(quotes.value, self.tokens))

    def becomes(self, new: str) -> Edit:
        return Edit(self.tokens[0].start, self.tokens[-1].end, new)

    @property
    def is_double_quoted(self) -> bool:
        return any(token.kind is Kind.DOUBLE_QUOTED for token in self.tokens)

    @property
    def is_plain(self) -> bool:
        """Whether it has the same meaning in every session."""
        return not any(_SPECIAL.search(token.text) for token in self.tokens)


def _unescaped_always(text: str) -> list[Edit]:
    """Returns edits of always unescaped strings to single quotes, because double quotes may mean names."""
    found = (each for each in _strings(text, _Use.TYPED) if each.is_double_quoted)
    return [each.becomes(string_literal("".join(map(string_value, each.tokens)))) for each in found]


def _as_at_rest(text: str, quotes: Quotes, use: _Use) -> list[Edit]:
    found = (each for each in _strings(text, use) if each.value(quotes) != each.value(SPARKS_DEFAULT))
    return [each.becomes(string_literal(each.value(quotes))) for each in found]


def _names_in_double_quotes(text: str) -> list[Edit]:
    found = (token for token in tokenize(text) if token.kind is Kind.DOUBLE_QUOTED)
    return [Edit(each.start, each.end, quote(each.text[1:-1].replace('""', '"'))) for each in found]


def _bytes_of(value: str) -> str:
    return f"cast(X'{value.encode().hex().upper()}' as string)"


def _strings(text: str, use: _Use) -> Iterator[_Strings]:
    tokens = tokenize(text)
    at, own_until = 0, 0
    while at < len(tokens):
        word = tokens[at].word.lower()
        if word in table_functions.NAMES and tokens[at + 1].word == "(":
            own_until = max(own_until, closing(tokens, at + 1))
        first = at
        while tokens[at].kind in _STRINGS:
            at += 1
        if at > first:
            found = _Strings(tokens[first:at], _use(tokens, first, own_until))
            if found.use is use:
                yield found
        at = max(at, first + 1)


def _use(tokens: Sequence[Token], at: int, own_until: int) -> _Use:
    if at and tokens[at - 1].word in _BEFORE_A_TYPED_LITERAL:
        return _Use.TYPED
    return _Use.OWN if at < own_until else _Use.CONSTANT
