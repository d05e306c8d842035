"""Parses the calls of the table functions that this engine itself answers.

`table_changes('main.orders', 12)` reads the change feed. `silt_changes('main.orders', after => 12)` reads the changes
of a table that need not record them (decision 0086).

`read_files('/data/orders/*.csv', format => 'csv', header => true, schemaHints => 'id bigint')` returns the rows of
files outside of tables. It has the name and syntax of the function in Databricks SQL; its options are the options of
Spark's reader of the format, with `schema` (the columns) and `schemaHints` (some columns' types, by name).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from dbt.adapters.silt.engine.sql.ast import Name
from dbt.adapters.silt.engine.sql.cursor import Cursor
from dbt.adapters.silt.engine.sql.tokens import Kind, tokenize

_CHANGES = "table_changes"
_CHANGES_BY_PATH = "table_changes_by_path"
_FILES = "read_files"
_DIFFERENCE = "silt_changes"

NAMES = frozenset((_CHANGES, _CHANGES_BY_PATH, _FILES, _DIFFERENCE))

_LITERAL: Final = r"""(?:[rR](?:'[^']*'|"[^"]*")|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_PATH_OF_CALL: Final = re.compile(rf"\b{_FILES}\s*\(\s*({_LITERAL}(?:\s*{_LITERAL})*)", re.DOTALL | re.IGNORECASE)

_UPSERTS = "upserts"
_OPTIONS = ("after", "until", "as", "key", "consumer")


@dataclass(frozen=True)
class FilesCall:
    """A call of `read_files`: the call as written, the files' path, and the options by lower-case name."""

    text: str
    path: str
    options: Mapping[str, str] = field(hash=False)


@dataclass(frozen=True)
class DifferenceCall:
    """The options of a call of `silt_changes`.

    Attributes:
        after: SQL of the version after which the changes begin; without it, all rows are returned.
        until: SQL of the last version, by default the newest.
        keys: the columns of a key; if there are any, the newest row of each changed key is returned.
        consumer: the table that consumes the changes: they begin after the version that it consumed last, and `after`
            is only for a table that exists but has not consumed any.
    """

    after: str | None = None
    until: str | None = None
    keys: tuple[str, ...] = ()
    consumer: Name | None = None

    @property
    def bounds(self) -> tuple[str, ...]:
        """The SQL of the call's arguments that are versions."""
        return tuple(text for text in (self.after, self.until) if text is not None)


@dataclass(frozen=True)
class Call:
    """The input of a call: changes of versions of the table `name`, recorded or not, or files."""

    name: Name
    changes: tuple[str, ...] | None = None
    difference: DifferenceCall | None = None
    files: FilesCall | None = None


def call(name: str, arguments: Cursor, text: str) -> Call:
    """Returns the call of a function in NAMES.

    Args:
        name: the function's name.
        arguments: cursor over the text between its parentheses.
        text: the whole call.

    Raises:
        StatementSyntaxError: if the arguments are not valid for it.
    """
    function = name.lower()
    if function == _DIFFERENCE:
        return _difference(arguments)
    return _files(arguments, text) if function == _FILES else _changes(arguments, function == _CHANGES_BY_PATH)


def named_files(code: str) -> frozenset[str]:
    """Returns the paths in the calls of `read_files` in code: SQL, with or without Jinja, or Python with SQL in it."""
    literals = (found[1] for found in _PATH_OF_CALL.finditer(code))
    return frozenset(Cursor(text, tokenize(text)).string() for text in literals)


def _changes(arguments: Cursor, by_path: bool) -> Call:
    text = arguments.string("the table's name as a string")
    bounds = []
    while arguments.take(","):
        bounds.append(arguments.until(",", what="a version or a time"))
    arguments.finished()
    if not 1 <= len(bounds) <= 2:
        raise arguments.error(
            "it takes a table's name, the first version, and the last version unless it is the newest"
        )
    return Call(("delta", text) if by_path else _name_in_string(text), changes=tuple(bounds))


def _difference(arguments: Cursor) -> Call:
    name = _name_in_string(arguments.string("the table's name as a string"))
    given: dict[str, str] = {}
    keys: tuple[str, ...] = ()
    consumer: Name | None = None
    while arguments.take(","):
        option = arguments.identifier("the name of an option").lower()
        if option in given or option not in _OPTIONS:
            raise arguments.error(f"`{option}` is given twice" if option in given else f"it has no option `{option}`")
        arguments.expect("=>")
        if option == "key":
            given[option] = arguments.string("the key's columns as a string")
            keys = _columns_in_string(given[option])
        elif option == "consumer":
            given[option] = arguments.string("the consuming table's name as a string")
            consumer = _name_in_string(given[option])
        elif option == "as":
            given[option] = arguments.string(f"'{_UPSERTS}'").lower()
        else:
            given[option] = arguments.until(",", what="a version")
    arguments.finished()
    if given.get("as", _UPSERTS) != _UPSERTS or ("as" in given) != bool(keys):
        raise arguments.error(f"`as => '{_UPSERTS}'` and `key => '<columns>'` must be given together")
    return Call(name, difference=DifferenceCall(given.get("after"), given.get("until"), keys, consumer))


def _files(arguments: Cursor, text: str) -> Call:
    path = arguments.string("the files' path as a string")
    options = {}
    while arguments.take(","):
        name = arguments.identifier("the name of an option").lower()
        arguments.expect("=>")
        options[name] = _constant(arguments)
    arguments.finished()
    return Call((_FILES,), files=FilesCall(text, path, options))


def _constant(arguments: Cursor) -> str:
    """Returns the value of an option, as text."""
    if arguments.token.kind in (Kind.STRING, Kind.DOUBLE_QUOTED):
        return arguments.string()
    word = arguments.take_any("TRUE", "FALSE")
    if word is not None:
        return word.lower()
    sign = "-" if arguments.take("-") else ""
    if arguments.token.kind is not Kind.NUMBER:
        raise arguments.expected("a constant: a string, a number, true or false")
    arguments.at_token += 1
    return sign + arguments.tokens[arguments.at_token - 1].text


def _name_in_string(text: str) -> Name:
    """Parses the name of a table in a string literal."""
    cursor = Cursor(text, tokenize(text))
    parts = cursor.name()
    cursor.finished()
    return parts


def _columns_in_string(text: str) -> tuple[str, ...]:
    """Parses the names of columns in a string literal."""
    cursor = Cursor(text, tokenize(text))
    columns = cursor.separated(Cursor.column)
    cursor.finished()
    return columns
