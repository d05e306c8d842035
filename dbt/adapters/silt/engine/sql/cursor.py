"""Reads a statement token by token, for every family of the grammar."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, TypeVar

from dbt.adapters.silt.engine.kernel.errors import StatementSyntaxError, UnsupportedStatementError
from dbt.adapters.silt.engine.sql.ast import Name, PartitionValue, Statement, TimeTravel
from dbt.adapters.silt.engine.sql.spans import after_time_travel, closing, is_column_name
from dbt.adapters.silt.engine.sql.tokens import Kind, Token, double_quotes_remedy, string_value, syntax_error

T = TypeVar("T")


class Cursor:
    """A position in the tokens of a statement.

    Words are given in upper case and match only unquoted words and symbols. Returned text is verbatim, from the first
    to the last token.
    """

    def __init__(self, source: str, tokens: tuple[Token, ...]) -> None:
        self.source = source
        self.tokens = tokens
        self.at_token = 0

    @property
    def statement(self) -> str:
        """The text of the whole statement."""
        return self.cut(0, len(self.tokens) - 1)

    @property
    def token(self) -> Token:
        return self.tokens[self.at_token]

    @property
    def at_end(self) -> bool:
        return self.token.kind is Kind.END

    def ahead(self, count: int) -> Token:
        """Returns the token `count` tokens ahead, or the END token if fewer remain."""
        return self.tokens[min(self.at_token + count, len(self.tokens) - 1)]

    def at(self, *words: str) -> bool:
        """Returns whether these words come next, in this order."""
        return all(self.ahead(index).word == word for index, word in enumerate(words))

    def at_any(self, *words: str) -> bool:
        """Returns whether any of these words comes next."""
        return bool(self.token.word) and self.token.word in words

    def take(self, *words: str) -> bool:
        """Steps over these words if they come next."""
        if not self.at(*words):
            return False
        self.at_token += len(words)
        return True

    def take_any(self, *words: str) -> str | None:
        """Steps over any of these words if it comes next, and returns it."""
        if not self.at_any(*words):
            return None
        self.at_token += 1
        return self.tokens[self.at_token - 1].word

    def expect(self, *words: str) -> None:
        """Steps over these words, which must come next."""
        if not self.take(*words):
            raise self.expected(f"{' '.join(words)}")

    def error(self, problem: str, remedy: str | None = None) -> StatementSyntaxError:
        """Returns the error for the current token."""
        return syntax_error(problem, self.source, self.token.start, remedy)

    def expected(self, what: str) -> StatementSyntaxError:
        """Returns the error for an unexpected current token."""
        found = "the end" if self.at_end else f"`{self.token.text}`"
        return self.error(f"expected {what}, found {found}")

    def cut(self, first: int, after: int) -> str:
        """Returns the text of the tokens from index `first` up to, not including, index `after`."""
        return self.source[self.tokens[first].start : self.tokens[after - 1].end] if after > first else ""

    def finished(self) -> None:
        """Checks that nothing follows.

        Raises:
            StatementSyntaxError: if a token follows.
        """
        if not self.at_end:
            raise self.expected("the end of the statement")

    # Names and literals

    def identifier(self, what: str = "a name") -> str:
        if self.token.kind is Kind.DOUBLE_QUOTED:
            said = self.token.text
            raise self.error(f"expected {what}, found the string {said}", double_quotes_remedy(said))
        if not self.token.is_identifier:
            raise self.expected(f"{what}")
        self.at_token += 1
        return self.tokens[self.at_token - 1].identifier

    def dotted(self, what: str = "a name") -> Name:
        """Parses a simple or dotted name, as of columns and functions."""
        parts = [self.identifier(what)]
        while self.take("."):
            parts.append(self.identifier(what))
        return tuple(parts)

    def column(self) -> str:
        """Parses the name of a column."""
        return self.identifier("a column")

    def column_path(self) -> Name:
        """Parses a column's name, or the path of names to a field inside it."""
        return self.dotted("a column")

    def name(self, what: str = "a table's name") -> Name:
        """Parses the name of a table or of any other object of the catalog.

        Raises:
            UnsupportedStatementError: for IDENTIFIER(...), or a version at a place that allows no version.
        """
        if self.at("IDENTIFIER", "("):
            raise UnsupportedStatementError(
                "IDENTIFIER(...) hides the name of a table from this engine", remedy="Write the name itself"
            )
        parts = self.dotted(what)
        if self.at("@") and self.token.start == self.tokens[self.at_token - 1].end:
            raise UnsupportedStatementError(
                f"`{'.'.join(parts)}@{self.ahead(1).text}` is a version of a table: it can only be read",
                remedy="Leave the version out",
            )
        return parts

    def name_or_path(self) -> Name:
        """Parses a table's name, or the path of a table as a string."""
        return ("delta", self.string()) if self.token.kind in _STRINGS else self.name()

    def string(self, what: str = "a string") -> str:
        """Returns the value of a string literal, joined with adjacent string literals."""
        if self.token.kind not in _STRINGS:
            raise self.expected(f"{what}")
        values: list[str] = []
        while self.token.kind in _STRINGS:
            values.append(string_value(self.token))
            self.at_token += 1
        return "".join(values)

    # Text

    def group(self) -> str:
        """Returns the text inside the parentheses that open here."""
        first, last = self._group_bounds()
        self.at_token = last + 1
        return self.cut(first, last)

    def group_cursor(self) -> Cursor:
        """Returns a cursor over the inside of the parentheses that open here; this cursor steps past them."""
        first, last = self._group_bounds()
        self.at_token = last + 1
        end = Token(Kind.END, "", "", self.tokens[last].start, self.tokens[last].start)
        return Cursor(self.source, (*self.tokens[first:last], end))

    def _group_bounds(self) -> tuple[int, int]:
        if not self.at("("):
            raise self.expected("(")
        last = closing(self.tokens, self.at_token)
        if self.tokens[last].kind is Kind.END:
            raise self.error("this parenthesis is not closed")
        return self.at_token + 1, last

    def until(self, *stops: str, what: str = "an expression") -> str:
        """Returns the text up to the next of these words outside of parentheses, brackets and CASE ... END."""
        first = self.at_token
        opened: list[str] = []
        while not self.at_end:
            if not opened and self.token.word in stops and not self._follows_dot(first):
                break
            if not self._follows_dot(first):
                self._nest(opened)
            self.at_token += 1
        if self.at_token == first:
            raise self.expected(f"{what}")
        if opened and self.at_end:
            raise self.error("a parenthesis or CASE is not closed")
        return self.cut(first, self.at_token)

    def _follows_dot(self, first: int) -> bool:
        return self.at_token > first and self.tokens[self.at_token - 1].word == "."

    def _nest(self, opened: list[str]) -> None:
        """Adds an opening token to the open parentheses, brackets and CASEs; a closing token removes the last of them.

        END without a CASE to close is a name, as in max(end).
        """
        word = self.token.word
        if word in ("(", "[") or (word == "CASE" and not is_column_name(self.tokens, self.at_token)):
            opened.append(word)
        elif word == "END" and opened[-1:] == ["CASE"]:
            opened.pop()
        elif word in (")", "]"):
            if not opened:
                raise self.error("this parenthesis was never opened")
            opened.pop()

    def rest(self, what: str = "a query") -> str:
        """Returns all the remaining text."""
        return self.until(what=what)

    # Lists

    def separated(self, item: Callable[[Cursor], T]) -> tuple[T, ...]:
        """Parses a non-empty, comma-separated list of items."""
        items = [item(self)]
        while self.take(","):
            items.append(item(self))
        return tuple(items)

    def listed(self, item: Callable[[Cursor], T]) -> tuple[T, ...]:
        """Parses a non-empty, comma-separated list of items in parentheses."""
        inside = self.group_cursor()
        items = inside.separated(item)
        inside.finished()
        return items

    # Clauses that many statements share

    def if_exists(self) -> bool:
        return self.take("IF", "EXISTS")

    def if_not_exists(self) -> bool:
        return self.take("IF", "NOT", "EXISTS") or self.take("IF", "!", "EXISTS")

    def not_null(self) -> bool:
        return self.take("NOT", "NULL") or self.take("!", "NULL")

    def partition(self) -> tuple[PartitionValue, ...]:
        """Parses PARTITION (a = 1, b), or nothing."""
        if not self.take("PARTITION"):
            return ()
        values = self.listed(_partition_value)
        self._check_distinct("partition column", [each.column for each in values])
        return values

    def properties(self) -> Mapping[str, str]:
        """Parses (key = value, ...), with values as text: a string's value, a number's digits, true or false."""
        if self.at("(", ")"):
            self.at_token += 2
            return {}
        pairs = self.listed(_property)
        self._check_distinct("property", [key for key, _ in pairs])
        return dict(pairs)

    def property_key(self) -> str:
        return self.string() if self.token.kind in _STRINGS else ".".join(self.dotted("a property's name"))

    def time_travel(self) -> TimeTravel | None:
        """Parses [FOR] VERSION | TIMESTAMP AS OF expression, or nothing."""
        found = after_time_travel(self.tokens, self.at_token)
        if found is None:
            return None
        kind, first, self.at_token = found
        text = self.cut(first, self.at_token)
        if not text:
            raise self.expected(f"a {kind}")
        return TimeTravel(version=text) if kind == "version" else TimeTravel(timestamp=text)

    def alias(self, *not_one: str) -> str | None:
        """Parses [AS] alias, or nothing if any of these words comes next."""
        if self.take("AS"):
            return self.identifier("an alias")
        if self.token.kind is Kind.QUOTED or (self.token.kind is Kind.WORD and not self.at_any(*not_one)):
            return self.identifier()
        return None

    def _check_distinct(self, what: str, names: Sequence[str]) -> None:
        seen: set[str] = set()
        for name in names:
            if name.lower() in seen:
                raise self.error(f"the {what} `{name}` is named twice", remedy="Name it once")
            seen.add(name.lower())

    def optional_keyword(self, word: str) -> None:
        """Steps over an optional keyword, unless it is itself the name."""
        if self.at(word) and self.ahead(1).is_identifier:
            self.at_token += 1


_STRINGS = (Kind.STRING, Kind.DOUBLE_QUOTED)


def _partition_value(cursor: Cursor) -> PartitionValue:
    column = cursor.identifier("a partition column")
    return PartitionValue(column, cursor.until(",", what="a value") if cursor.take_any("=", "==") else None)


def _property(cursor: Cursor) -> tuple[str, str]:
    key = cursor.property_key()
    cursor.take_any("=", "==")
    if cursor.at_any(",") or cursor.at_end:
        return key, ""
    if cursor.token.kind in _STRINGS:
        return key, cursor.string()
    value = cursor.until(",", what="a value")
    return key, value.lower() if value.lower() in ("true", "false") else value


FirstWords: TypeAlias = Mapping[str, Callable[[Cursor], Statement | None]]
"""The first words of statements, each with the function that parses them; it returns None for an unknown statement."""
