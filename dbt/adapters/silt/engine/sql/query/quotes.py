"""What stands between quotes, as the settings of a Spark session have it read, and the same for every session.

Three settings change what a quoted text means. A statement is read by those of its session. A text that stays (the
query of a view, the body of a function, a default, the condition of a constraint) is kept as Spark reads it by
default, as other readers of the table read it, and is written for each session that it runs in.

Source: Spark's SqlBaseParser.g4 (`stringLit`, `quotedIdentifier`) and AstBuilder.createString: `escapedStringLiterals`
is about constants of expressions alone; a comment, a path, a typed literal such as DATE '...' and the character of
ESCAPE are always unescaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from dbt.adapters.silt.engine.kernel.identifiers import quote, string_literal
from dbt.adapters.silt.engine.sql.byte_order_marks import without_byte_order_marks
from dbt.adapters.silt.engine.sql.query import table_functions
from dbt.adapters.silt.engine.sql.query.edits import Edit, edited
from dbt.adapters.silt.engine.sql.spans import closing
from dbt.adapters.silt.engine.sql.tokens import Kind, Token, string_value, tokenize


@dataclass(frozen=True)
class Quotes:
    """How a session reads quoted texts; the defaults are Spark's.

    Attributes:
        double_quoted_identifiers: "x" is a name, and no string.
        escaped_string_literals: a backslash in a constant is a backslash, and two quotes are two quotes.
        consecutive_string_literals: else, 'it''s' is 'it' and 's', one after the other.
    """

    double_quoted_identifiers: bool = False
    escaped_string_literals: bool = False
    consecutive_string_literals: bool = False

    def value(self, constant: Token) -> str:
        """The value of a string that is a constant of an expression."""
        if self.escaped_string_literals:
            return constant.text[1:-1]
        return string_value(constant, doubled_is_one=not self.consecutive_string_literals)

    def constant(self, value: str) -> str:
        """An expression with that value: a string where the session has one for it."""
        quoted = (f"'{value}'", string_literal(value), *(() if self.double_quoted_identifiers else (f'"{value}"',)))
        return next((text for text in quoted if self._reads(text, value)), _bytes_of(value))

    def _reads(self, text: str, value: str) -> bool:
        found = _STRING.fullmatch(text)
        return found is not None and self.value(Token(Kind.STRING, text, "", 0, len(text))) == value


SPARKS_DEFAULT = Quotes()


def as_read(text: str, quotes: Quotes) -> str:
    """A statement of a session in the form that this engine reads: its names in backquotes, without byte order marks.

    The arguments of the table functions that the engine itself answers become what they are at rest.

    Raises:
        StatementSyntaxError: as `tokenize`.
    """
    text = without_byte_order_marks(text)
    if quotes == SPARKS_DEFAULT:
        return text
    names = _names_in_double_quotes(text) if quotes.double_quoted_identifiers else []
    return edited(text, [*names, *_as_at_rest(text, quotes, _Place.OWN)])


def at_rest(text: str, quotes: Quotes) -> str:
    """A text that `as_read` gave, in the form in which it is kept: as Spark reads it by default.

    Raises:
        StatementSyntaxError: as `tokenize`.
    """
    if quotes == SPARKS_DEFAULT:
        return text
    return edited(text, _as_at_rest(text, quotes, _Place.CONSTANT))


def for_session(text: str, quotes: Quotes) -> str:
    """A text at rest as a session is given it.

    Raises:
        StatementSyntaxError: as `tokenize`.
    """
    if quotes == SPARKS_DEFAULT or not _SPECIAL.search(text):
        return text
    changed = (
        each.becomes(quotes.constant(each.value(SPARKS_DEFAULT)))
        for each in _strings(text, _Place.CONSTANT)
        if (each.is_double_quoted and quotes.double_quoted_identifiers)
        or each.value(quotes) != each.value(SPARKS_DEFAULT)
    )
    return edited(text, [*changed, *_unescaped_always(text)])


@lru_cache(maxsize=256)
def for_any_session(text: str) -> str:
    """A text at rest, so written that it means the same to every session; names that Spark derives from it may differ.

    Raises:
        StatementSyntaxError: as `tokenize`.
    """
    if not _SPECIAL.search(text):
        return text
    special = (each for each in _strings(text, _Place.CONSTANT) if not each.is_plain)
    changed = (each.becomes(constant(each.value(SPARKS_DEFAULT))) for each in special)
    return edited(text, [*changed, *_unescaped_always(text)])


def without_quoted(text: str) -> str:
    """The text with an empty string in the place of each string and of each name in quotes."""
    quoted = (token for token in tokenize(text) if token.kind in (*_STRINGS, Kind.QUOTED))
    return edited(text, [Edit(token.start, token.end, "''") for token in quoted])


def constant(value: str) -> str:
    """An expression with that value, whatever the session's settings are."""
    return _bytes_of(value) if "'" in value or "\\" in value else f"'{value}'"


_SPECIAL = re.compile(r"[\\\"]|''|[rR]'")
_STRING = re.compile(r"'[^'\\]*(?:(?:\\.|'')[^'\\]*)*'|\"[^\"\\]*(?:(?:\\.|\"\")[^\"\\]*)*\"", re.DOTALL)
_BEFORE_A_TYPED_LITERAL = frozenset(
    ("ESCAPE", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "INTERVAL", "X")
)
_STRINGS = (Kind.STRING, Kind.DOUBLE_QUOTED)


class _Place(Enum):
    CONSTANT = "a constant of an expression"
    TYPED = "a part of a literal, always unescaped"
    OWN = "an argument of a table function that the engine itself answers"


@dataclass(frozen=True)
class _Strings:
    """Strings one after the other, which are one text."""

    tokens: tuple[Token, ...]
    place: _Place

    def value(self, quotes: Quotes) -> str:
        return "".join(map(quotes.value, self.tokens))

    def becomes(self, new: str) -> Edit:
        return Edit(self.tokens[0].start, self.tokens[-1].end, new)

    @property
    def is_double_quoted(self) -> bool:
        return any(token.kind is Kind.DOUBLE_QUOTED for token in self.tokens)

    @property
    def is_plain(self) -> bool:
        """Whether it means the same to every session."""
        return not any(_SPECIAL.search(token.text) for token in self.tokens)


def _unescaped_always(text: str) -> list[Edit]:
    """Parts of literals without double quotes, which may be those of names."""
    found = (each for each in _strings(text, _Place.TYPED) if each.is_double_quoted)
    return [each.becomes(string_literal("".join(map(string_value, each.tokens)))) for each in found]


def _as_at_rest(text: str, quotes: Quotes, place: _Place) -> list[Edit]:
    found = (each for each in _strings(text, place) if each.value(quotes) != each.value(SPARKS_DEFAULT))
    return [each.becomes(string_literal(each.value(quotes))) for each in found]


def _names_in_double_quotes(text: str) -> list[Edit]:
    found = (token for token in tokenize(text) if token.kind is Kind.DOUBLE_QUOTED)
    return [Edit(each.start, each.end, quote(each.text[1:-1].replace('""', '"'))) for each in found]


def _bytes_of(value: str) -> str:
    return f"cast(X'{value.encode().hex().upper()}' as string)"


def _strings(text: str, place: _Place) -> Iterator[_Strings]:
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
            found = _Strings(tokens[first:at], _place(tokens, first, own_until))
            if found.place is place:
                yield found
        at = max(at, first + 1)


def _place(tokens: Sequence[Token], at: int, own_until: int) -> _Place:
    if at and tokens[at - 1].word in _BEFORE_A_TYPED_LITERAL:
        return _Place.TYPED
    return _Place.OWN if at < own_until else _Place.CONSTANT
