"""Translates the names of types in other databases into Spark's types.

A project that also runs on another database declares its types by that database's names. A name is translated if
it has a single meaning in Spark, inside of arrays, maps and structs too; for other names, the error of the type has a
remedy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from dbt.adapters.silt.engine.kernel.errors import StatementSyntaxError
from dbt.adapters.silt.engine.kernel.near_names import near_names
from dbt.adapters.silt.engine.sql.tokens import Kind, Token, tokenize

TYPES: Final = "Spark's types are string, bigint, int, double, decimal(10, 2), boolean, date, timestamp and others"
"""The remedy for a type of which nothing else is known."""

_STRINGS: Final = (
    "text, tinytext, mediumtext, longtext, ntext, citext, clob, nclob, long varchar, uuid, uniqueidentifier, json"
)
_SIZED_STRINGS: Final = (
    "varchar, varchar2, nvarchar, nvarchar2, character varying, char varying, national character varying"
)
_SIZED_CHARACTERS: Final = "char, character, nchar, bpchar, national character"


def _all(names: str, spark: str) -> Mapping[str, str]:
    return dict.fromkeys(names.split(", "), spark)


_NAMES: Final[Mapping[str, str]] = {
    **_all(f"{_STRINGS}, {_SIZED_STRINGS}, {_SIZED_CHARACTERS}", "string"),
    **_all("bytes, bytea, blob, varbinary, raw, mediumblob, longblob, tinyblob", "binary"),
    **_all("bool", "boolean"),
    **_all("int1", "tinyint"),
    **_all("int2, int16, utinyint, uint8, smallserial", "smallint"),
    **_all("int4, int32, mediumint, usmallint, uint16, serial", "int"),
    **_all("int8, int64, uinteger, uint32, bigserial", "bigint"),
    **_all("ubigint, uint64", "decimal(20, 0)"),
    **_all("number, hugeint", "decimal(38, 0)"),
    **_all("float4, binary_float", "float"),
    **_all("float8, float64, double precision, binary_double", "double"),
    **_all("timestamptz, timestamp_tz, timestampltz, datetimeoffset", "timestamp"),
    **_all("timestamp with time zone, timestamp with local time zone", "timestamp"),
    **_all("datetime, datetime2, smalldatetime, timestampntz, timestamp without time zone", "timestamp_ntz"),
}
"""Spark's types for types without arguments."""

_SIZED: Final[Mapping[str, str]] = {
    **_all(f"string, text, {_SIZED_STRINGS}", "varchar"),
    **_all(_SIZED_CHARACTERS, "char"),
    **_all("number, bignumeric, bigdecimal", "decimal"),
}
"""Spark's types for types with the same arguments."""

_ONLY_DISPLAYED: Final = frozenset("tinyint smallint int integer bigint mediumint binary varbinary raw bytes".split())
"""Types whose argument limits no value, or only the bytes of a value."""

_TIMES: Final = frozenset(name for name, spark in _NAMES.items() if spark.startswith("timestamp")) | {
    "timestamp",
    "timestamp_ntz",
    "timestamp_ltz",
}
"""Times, which may have a number of digits of their seconds: Spark always keeps six."""

_SUGGESTED: Final[Mapping[str, str]] = {
    "bit": "`boolean`",
    "unsigned": "`bigint`",
    "money": "`decimal(19, 4)`",
    **_all("bignumeric, bigdecimal", "`decimal(38, 0)`; its arguments are the precision and the scale"),
    **_all("jsonb, super", "`variant`, or `string` for its text"),
    **_all("object", "`map<string, string>`, `struct<name: type, ...>` or `variant`"),
    **_all("time, timetz, time_ntz, xml", "`string`"),
}
"""Remedies for types with several meanings in Spark."""

_EXPLAINED: Final[Mapping[str, str]] = {
    "decimal(38, 0)": "; its arguments are the precision and the scale",
    "timestamp_ntz": " (a local time), or `timestamp` (an instant)",
}
_IDENTITY: Final = re.compile(r"\b(identity\s*\(|auto_?increment\b)", re.IGNORECASE)
_DECIMAL: Final = re.compile(r"\b(?:decimal|numeric|dec)\s*\(\s*(\d+)", re.IGNORECASE)
_MOST_DIGITS: Final = 38
_LONGEST_FLOAT: Final = 24
"""Bits of a number that has four bytes."""
_WORD: Final = re.compile(r"[a-z_]\w*", re.IGNORECASE)
_SIMILAR: Final = 0.75
_SPARK_TYPES: Final = (
    "array bigint binary boolean byte char date decimal double float int integer interval long map numeric real short "
    "smallint string struct timestamp timestamp_ltz timestamp_ntz tinyint varchar variant"
).split()
_NESTED: Final[Mapping[str, str]] = {"list": "array", "row": "struct"}
_CLOSING: Final[Mapping[str, str]] = {"<": ">", "(": ")"}
_WORDS_AFTER: Final = frozenset("varying precision character varchar with without local time zone".split())
_DEEPEST: Final = 50


def spark_type(text: str) -> str:
    """Returns Spark's name of a type; the same text if Spark has that name, or the type is not known.

    Args:
        text: the type as SQL, such as `character varying(10)` or `struct<a int8, b text[]>`.
    """
    try:
        reader = _Reader(text)
        found = reader.type()
    except (_NotAType, StatementSyntaxError):
        return text
    return found if reader.is_at_end and reader.has_translated else text


def type_remedy(text: str) -> str | None:
    """Returns the remedy for a column type that Spark does not have, if the type is known.

    Args:
        text: the type as SQL, such as `number(10, 2)`.
    """
    if _IDENTITY.search(text):
        return "In Spark, write `bigint generated always as identity`"
    name = " ".join(text.partition("(")[0].lower().split())
    translated = spark_type(text)
    if translated != text:
        is_nested = "<" in text or "[" in text
        return f"In Spark, {'write' if is_nested else 'the type is'} `{translated}`{_EXPLAINED.get(translated, '')}"
    if name in _SUGGESTED:
        return f"In Spark, the type is {_SUGGESTED[name]}"
    return _near_type(text)


def _near_type(text: str) -> str | None:
    """Returns the remedy for a misspelt word inside of a type, or a decimal with too many digits."""
    digits = _DECIMAL.search(text)
    if digits is not None and int(digits[1]) > _MOST_DIGITS:
        return f"A decimal has at most {_MOST_DIGITS} digits: write `decimal({_MOST_DIGITS}, s)`, or store a string"
    for word in _WORD.finditer(text):
        name = word[0].lower()
        near = [] if name in (*_SPARK_TYPES, *_NAMES) else near_names(name, _SPARK_TYPES, 1, _SIMILAR)
        if near:
            return f"Did you mean `{text[: word.start()].lower()}{near[0]}{text[word.end() :].lower()}`?"
    return None


class _NotAType(Exception):
    """The text is not a type that this module can read."""


class _Reader:
    """Reads a type, and writes it with Spark's names.

    Attributes:
        has_translated: whether the text so far has anything that Spark writes in another way.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokenize(text)
        self._position = 0
        self._depth = 0
        self.has_translated = False

    @property
    def is_at_end(self) -> bool:
        """Whether all of the text was read."""
        return self._next.kind is Kind.END

    def type(self) -> str:
        """Reads a type. Raises `_NotAType`."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _NotAType
        found = self._nested() or self._simple()
        while self._next.text == "[":
            self._position += 1
            if self._next.kind is Kind.NUMBER:
                self._position += 1
            self._take("]")
            found, self.has_translated = f"array<{found}>", True
        self._depth -= 1
        return found

    @property
    def _next(self) -> Token:
        return self._tokens[self._position]

    def _take(self, text: str) -> None:
        if self._next.text != text:
            raise _NotAType
        self._position += 1

    def _nested(self) -> str | None:
        kind, begin = self._next.text.lower(), self._tokens[self._position : self._position + 2][-1].text
        if kind not in ("array", "list", "map", "struct", "row") or begin not in _CLOSING:
            return None
        self._position += 2
        self.has_translated |= begin == "(" or kind in ("list", "row")
        read = self._field if kind in ("struct", "row") else self.type
        parts = [read()]
        while self._next.text == ",":
            self._position += 1
            parts.append(read())
        self._take(_CLOSING[begin])
        return f"{_NESTED.get(kind, kind)}<{', '.join(parts)}>"

    def _field(self) -> str:
        if not self._next.is_identifier:
            raise _NotAType
        name = self._next.text
        self._position += 1
        if self._next.text == ":":
            self._position += 1
        kind, start = self.type(), self._next.start
        while self._next.kind is not Kind.END and self._next.text not in (",", ">", ")"):
            self._position += 1
        rest = self._text[start : self._next.start].strip()
        return f"{name}: {kind}{' ' if rest else ''}{rest}"

    def _simple(self) -> str:
        if self._next.kind is not Kind.WORD:
            raise _NotAType
        words = [self._next.text.lower()]
        self._position += 1
        words += self._words()
        arguments = self._arguments() if self._next.text == "(" else None
        words += self._words() if arguments else ()
        name = " ".join(words)
        spark = self._sized(name, arguments) if arguments else _NAMES.get(name)
        written = name if arguments is None else f"{name}({', '.join(arguments)})"
        self.has_translated |= spark not in (None, written)
        return spark or written

    def _words(self) -> Iterator[str]:
        while self._next.kind is Kind.WORD and self._next.text.lower() in _WORDS_AFTER:
            yield self._next.text.lower()
            self._position += 1

    def _arguments(self) -> list[str]:
        self._position += 1
        found = []
        while self._next.text != ")":
            if self._next.kind is not Kind.NUMBER and self._next.text.lower() != "max":
                raise _NotAType
            found.append(self._next.text.lower())
            self._position += 1
            if self._next.text == ",":
                self._position += 1
        self._position += 1
        return found

    @staticmethod
    def _sized(name: str, arguments: list[str]) -> str | None:
        if name in _TIMES or name in _ONLY_DISPLAYED:
            return _NAMES.get(name, name)
        if name == "float" and len(arguments) == 1 and arguments[0].isdigit():
            return "float" if int(arguments[0]) <= _LONGEST_FLOAT else "double"
        if name in _SIZED:
            return "string" if arguments == ["max"] else f"{_SIZED[name]}({', '.join(arguments)})"
        return _NAMES.get(name)
