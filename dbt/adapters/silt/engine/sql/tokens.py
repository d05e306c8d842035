"""Splits SQL into tokens exactly as Spark's own lexer does, and SQL text into its statements.

If this lexer saw a name and Spark a comment, or the reverse, a table would be left unpinned. So the rules are the rules
of Spark's SqlBaseLexer.g4 and of no other dialect, and every token keeps its span of the text.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple

from dbt.adapters.silt.engine.kernel.errors import InternalError, StatementSyntaxError
from dbt.adapters.silt.engine.kernel.identifiers import quote, unquote


class Kind(Enum):
    """The kind of a token."""

    WORD = "word"
    QUOTED = "`identifier`"
    STRING = "'string'"
    DOUBLE_QUOTED = '"string"'
    NUMBER = "number"
    SYMBOL = "symbol"
    HINT = "/*+ hint */"
    END = "end"


class Token(NamedTuple):
    """A token: `text` is `source[start:end]`.

    `word` is the upper-case text of a WORD and the text of a SYMBOL, and empty for all other kinds, so that no string
    and no quoted identifier is mistaken for a keyword.
    """

    kind: Kind
    text: str
    word: str
    start: int
    end: int

    @property
    def is_identifier(self) -> bool:
        return self.kind is Kind.WORD or self.kind is Kind.QUOTED

    @property
    def identifier(self) -> str:
        """The identifier's name, without backquotes."""
        return unquote(self.text) if self.kind is Kind.QUOTED else self.text


_LEXER = re.compile(
    r"""
    [ \t\n\f\r\v\u00a0\u1680\u2000-\u200a\u2028\u202f\u205f\u3000]*
    (?:
        (?P<WORD>[^\W\d_]+://[\w/\-.?=&\#%]+|(?![0-9])\w+)
      | (?P<STRING>'[^'\\]*(?:(?:\\.|'')[^'\\]*)*')
      | (?P<QUOTED>`[^`]*(?:``[^`]*)*`)
      | (?P<NUMBER>(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?:[bB][dD]|[dDfF])?(?![A-Za-z0-9_])
                 |[0-9]+(?:[eE][+-]?[0-9]+)?(?:[bB][dD]|[lLsSyYdDfF])?(?!\w))
      | (?P<DIGITS_FIRST>\w+)
      | (?P<LINE_COMMENT>--(?:\\\n|[^\r\n])*)
      | (?P<COMMENT>/\*)
      | (?P<DOUBLE_QUOTED>"[^"\\]*(?:(?:\\.|"")[^"\\]*)*")
      | (?P<OPEN>['"`])
      | (?P<SYMBOL><=>|<=|>=|<>|!=|==|!<|!>|<<|\|\||\|>|->|=>|::|:=|\*/|.)
      | (?P<END>\Z)
    )
    """,
    re.VERBOSE | re.DOTALL,
)
_HALF = re.compile("[\ud800-\udfff]")
_COMMENT_EDGE = re.compile(r"/\*(?!\+)|\*/")
_RAW_PREFIXES = frozenset("rR")
_QUOTES = frozenset("'\"")
_UNCLOSED = {"'": "a string", '"': "a string in double quotes", "`": "a quoted identifier"}
_RAW_STRING = re.compile(r"'[^']*'|\"[^\"]*\"")


@lru_cache(maxsize=256)
def tokenize(text: str) -> tuple[Token, ...]:
    """Returns the tokens of the text without comments, ending with a token of kind END.

    Raises:
        StatementSyntaxError: if a string, quoted identifier or comment is not closed, or the text contains half of a
            surrogate pair, which Python reads from a terminal or file in another encoding than UTF-8.
    """
    half = None if text.isascii() else _HALF.search(text)
    if half is not None:
        raise syntax_error("this is not a character in UTF-8", text, half.start(), "Use UTF-8 in the file or terminal")
    tokens: list[Token] = []
    position = 0
    while True:
        match = _LEXER.match(text, position)
        if match is None:
            raise InternalError(f"the lexer has no rule for the text at {position}")
        group = match.lastgroup or ""
        start, position = match.span(group)
        found = text[start:position]
        if group == "WORD" or group == "DIGITS_FIRST":
            if found in _RAW_PREFIXES and text[position : position + 1] in _QUOTES:
                position = _after_raw_string(text, start, tokens)
            else:
                tokens.append(Token(Kind.WORD, found, found.upper(), start, position))
        elif group == "SYMBOL":
            tokens.append(Token(Kind.SYMBOL, found, found, start, position))
        elif group == "COMMENT":
            position = _after_comment(text, start, tokens)
        elif group == "OPEN":
            raise syntax_error(f"{_UNCLOSED[found]} is not closed", text, start)
        elif group != "LINE_COMMENT":
            tokens.append(Token(Kind[group], found, "", start, position))
            if group == "END":
                return tuple(tokens)


def _after_raw_string(text: str, start: int, tokens: list[Token]) -> int:
    """Returns the end of the raw string r'...' at `start`."""
    match = _RAW_STRING.match(text, start + 1)
    if match is None:
        raise syntax_error("a string is not closed", text, start)
    tokens.append(Token(Kind.STRING, text[start : match.end()], "", start, match.end()))
    return match.end()


def _after_comment(text: str, start: int, tokens: list[Token]) -> int:
    """Returns the end of the comment or hint that opens at `start`; a hint becomes a token."""
    is_hint = text.startswith("+", start + 2)
    depth = 1
    for edge in _COMMENT_EDGE.finditer(text, start + 2):
        depth += -1 if edge.group() == "*/" else 1
        if depth == 0:
            if is_hint:
                tokens.append(Token(Kind.HINT, text[start : edge.end()], "", start, edge.end()))
            return edge.end()
    raise syntax_error("a comment is not closed", text, start)


def syntax_error(problem: str, text: str, position: int, remedy: str | None = None) -> StatementSyntaxError:
    """Returns the error that names the problem, its line and column (both from 1) and the text around it.

    Args:
        remedy: the remedy; by default, to correct the statement.
    """
    before = text[:position]
    line = before.count("\n") + 1
    column = position - (before.rfind("\n") + 1) + 1
    nearby = " ".join(text[max(0, position - 30) : position + 30].split())
    where = f"near `{nearby}`" if nearby else "the text is empty"
    return StatementSyntaxError(
        f"{problem} (line {line}, column {column}, {where})",
        remedy=remedy,
        details={"line": line, "column": column},
    )


def double_quotes_remedy(text: str) -> str:
    """Returns the remedy for double-quoted text if Spark expects a name.

    Args:
        text: the string as written, with its quotes.
    """
    return f"In Spark, double quotes enclose a string: write the name in backticks, {quote(text[1:-1])}"


def string_value(token: Token, doubled_is_one: bool = True) -> str:
    """Returns the value of a string literal, its escapes resolved as Spark resolves them.

    Two escapes may be the halves of a surrogate pair, as in Java; half of a pair becomes a question mark.

    Args:
        doubled_is_one: whether two adjacent quotes are an escaped quote; otherwise they end a string and begin the
            next.

    Source: Spark's SparkParserUtils.unescapeSQLString.
    """
    text = token.text
    if text[0] in _RAW_PREFIXES:
        return text[2:-1]
    quote = text[0] if doubled_is_one else ""
    value = _ESCAPE.sub(lambda match: _unescaped(match, text[0], quote), text[1:-1])
    if value.isascii() or not _HALF.search(value):
        return value
    joined = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return joined.encode(errors="replace").decode()


_ESCAPE = re.compile(
    r"\\(?:(?P<octal>[0-3][0-7]{2})|u(?P<u>[0-9A-Fa-f]{4})|U(?P<U>[0-9A-Fa-f]{8})|(?P<other>.))|''|\"\"", re.DOTALL
)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


def _unescaped(match: re.Match[str], quote: str, doubled: str) -> str:
    if match.group() == quote * 2:
        return doubled
    if match["other"]:
        return _ESCAPED.get(match["other"], match["other"])
    if match["octal"]:
        return chr(int(match["octal"], 8))
    code = match["u"] or match["U"]
    return chr(int(code, 16)) if code and int(code, 16) <= sys.maxunicode else match.group()


def identifiers(text: str) -> list[str]:
    """Returns the identifiers in SQL text, in their order, each part of a name separately.

    Raises:
        StatementSyntaxError: as raised by `tokenize`.
    """
    return [token.identifier for token in tokenize(text) if token.is_identifier]


def is_exact_string(token: Token) -> bool:
    """Returns whether no setting affects the literal's value: single quotes, no escapes, no adjacent quotes."""
    return token.kind is Kind.STRING and token.text[0] == "'" and "\\" not in token.text and "'" not in token.text[1:-1]


def normal_text(sql: str) -> str:
    """Returns the tokens of SQL, separated by a space; text that cannot be split into tokens is returned unchanged."""
    try:
        return " ".join(token.text for token in tokenize(sql))
    except StatementSyntaxError:
        return sql


_MARK: Final = "\ufeff"


def without_byte_order_marks(text: str) -> str:
    """Returns the text with a blank for each mark outside of strings, quoted names and comments.

    The file of a model or a test becomes a part of a larger statement, so that its mark can be anywhere.

    Raises:
        StatementSyntaxError: as raised by `tokenize`.
    """
    if _MARK not in text:
        return text
    characters = list(text)
    for token in tokenize(text):
        if token.word == _MARK:
            characters[token.start] = " "
    return "".join(characters)


def split_statements(text: str) -> list[str]:
    """Returns the statements of SQL text, without the comments and semicolons between them.

    Raises:
        StatementSyntaxError: if a string, a quoted name or a comment is not closed.
    """
    text = without_byte_order_marks(text)
    tokens = tokenize(text)
    if begins_script(tokens):
        return [text]
    statements, first = [], None
    for index, token in enumerate(tokens):
        if token.word == ";" or token.kind is Kind.END:
            if first is not None:
                statements.append(text[first : tokens[index - 1].end])
            first = None
        elif first is None:
            first = token.start
    return statements


def begins_script(tokens: Sequence[Token]) -> bool:
    """Returns whether the text is a script, whose BEGIN is followed by its first statement, not by a semicolon."""
    following = [token for token in tokens[1:] if token.word not in ("TRANSACTION", "WORK")][:1]
    return tokens[0].word == "BEGIN" and not (following[0].word == ";" or following[0].kind is Kind.END)
