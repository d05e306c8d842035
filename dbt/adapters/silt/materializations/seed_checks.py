"""Checks a seed's file before its rows are read: mistakes that would change rows or columns without an error."""

from __future__ import annotations

import contextlib
import csv
import re
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from io import StringIO
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from agate.exceptions import CastError
from dbt_common.clients.agate_helper import BOM, Number

from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError, StatementSyntaxError
from dbt.adapters.silt.engine.kernel.near_names import nearest

# The checks say the same to dbt's users, and of columns only that a seed itself should have.
warnings.filterwarnings("ignore", category=RuntimeWarning, module="agate")

_COMMA: Final = ","
_DELIMITERS: Final = {_COMMA: "','", ";": "';'", "|": "'|'", "\t": '"\\t"'}
_ZERO: Final = re.compile(r"\b0\d")
_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?")
_PLAIN: Final = re.compile(r"\s*(-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?inf(inity)?|s?nan)\s*", re.ASCII | re.IGNORECASE)
"""The usual ways to write a number, in which it loses nothing."""
_OF_FRACTIONS: Final = frozenset(".eE")
"""The characters of numbers that are read as double."""
_EXACT_DIGITS: Final = 15
_ZEROS: Final = "to keep the zeros of a code"
_NULLS: Final = ("", "null")
_NEVER_CLOSED: Final = "unexpected end of data"


def seed_file(model: Mapping[str, Any]) -> Path:
    """Returns the path of a seed's file."""
    return Path(model["root_path"] or ".", model["original_file_path"])


def check_file(model: Mapping[str, Any], types: Collection[str], delimiter: str | None) -> list[str]:
    """Checks the lines and the quotation marks of a seed's file; a file that cannot be read is left to dbt's reader.

    Args:
        types: the names of columns in `column_types`.

    Returns:
        Warnings about names that dbt changes, misspelt names in `column_types`, and values that are read as another
        number than their text says.

    Raises:
        InvalidStatementError: if the file is empty, so it has no column names.
        StatementSyntaxError: if it has another delimiter, a quotation mark that is not closed, or a line with more
            values than the first line has names.
    """
    file, name = seed_file(model), str(model["name"])
    if not file.stat().st_size:
        raise InvalidStatementError(
            f"the file of the seed {name} is empty", remedy="Add a first line with the column names"
        )
    with contextlib.suppress(OSError, UnicodeError, TypeError, csv.Error):
        text = file.read_text(encoding="utf-8").removeprefix(BOM)
        names = next(csv.reader(StringIO(text), delimiter=delimiter or _COMMA), [])
        _check_delimiter(name, text.partition("\n")[0], names, delimiter or _COMMA)
        if text.count('"') % 2:
            _check_quotes(name, text, delimiter or _COMMA)
        changed = _changed_numbers(name, types, _lines(name, text, delimiter or _COMMA))
        return [*_changed_names(name, names), *_misspelt(name, types, names), *changed]
    return []


def _check_delimiter(name: str, line: str, names: Sequence[str], delimiter: str) -> None:
    others = [each for each in _DELIMITERS if each != delimiter and each in line]
    if len(names) == 1 and others and '"' not in line:
        own = _DELIMITERS.get(delimiter, delimiter)
        raise StatementSyntaxError(
            f"a syntax error in the file of the seed {name}: its first line has no {own}, but {_DELIMITERS[others[0]]}",
            remedy=f"Set `delimiter: {_DELIMITERS[others[0]]}` in the seed's config, or put the name in double quotes",
        )


def _check_quotes(name: str, text: str, delimiter: str) -> None:
    lines, begun = csv.reader(StringIO(text), delimiter=delimiter, strict=True), 1
    try:
        for _ in lines:
            begun = lines.line_num + 1
    except csv.Error as error:
        if _NEVER_CLOSED in str(error):
            raise StatementSyntaxError(
                f'line {begun} of the seed {name} has a quotation mark (") that is not closed, so all that follows '
                "would be one value",
                remedy="Close it, or write it twice within a value that is in double quotes",
            ) from error


def _lines(name: str, text: str, delimiter: str) -> Iterator[list[str]]:
    """Yields the lines; raises StatementSyntaxError at a line with too many values."""
    lines, names = csv.reader(StringIO(text), delimiter=delimiter), None
    for values in lines:
        names = values if names is None else names
        if len(values) > len(names):
            raise StatementSyntaxError(
                f"line {lines.line_num} of the seed {name} has {len(values)} values, but the first line names "
                f"{len(names)} columns",
                remedy=f"Put a value that contains `{delimiter}` in double quotes, or name the column",
            )
        yield values


def _changed_names(name: str, names: Sequence[str]) -> Iterator[str]:
    """Yields the names that dbt changes."""
    for each, count in Counter(names).items():
        if each and count > 1:
            yield f"The seed {name} has {count} columns `{each}` in its first line: dbt renames the later columns"
    if "" in names:
        position = names.index("") + 1
        yield f"The seed {name} has no name for column {position} in its first line: dbt gives it one"


def _changed_numbers(name: str, types: Collection[str], lines: Iterable[list[str]]) -> Iterator[str]:
    """Yields a warning for each column of numbers in which a value such as `01234` or `50%` loses a part."""
    for column, *values in zip_longest(*lines, fillvalue=""):
        if column in types:
            continue
        given = [each for each in values if each.strip().lower() not in _NULLS]
        begun = next((each for each in given if _ZERO.match(each)), None)
        if begun is not None and all(map(_NUMBER.fullmatch, given)):
            yield _changed_number(name, column, begun, begun.lstrip("0") if begun.strip("0.") else "0", _ZEROS)
        elif (changed := _first_changed(given)) is not None:
            yield _changed_number(name, column, *changed, "to keep the text")


def _changed_number(name: str, column: str, text: str, number: str, purpose: str) -> str:
    return (
        f"The seed {name} has `{text}` in the column `{column}`, which is read as the number {number}: {purpose}, add "
        f"`{column}: string` to the seed's `column_types`"
    )


def _first_changed(texts: Sequence[str]) -> tuple[str, str] | None:
    """Returns the first text that is written otherwise than its number, and the number, if all texts are numbers."""
    has_fraction = any(not _OF_FRACTIONS.isdisjoint(each) for each in texts)
    odd = next((each for each in texts if not _PLAIN.fullmatch(each) or (has_fraction and _is_rounded(each))), None)
    if odd is None:
        return None
    number: Any = Number()
    try:
        numbers = {each: number.cast(each) for each in (odd, *texts)}
    except CastError:
        return None
    return odd, f"{float(numbers[odd])!r}" if has_fraction else f"{numbers[odd]:f}"


def _is_rounded(text: str) -> bool:
    """Returns whether a column of type double holds another number than the text."""
    return len(text) > _EXACT_DIGITS and Decimal(repr(float(text))) != Decimal(text)


def _misspelt(name: str, types: Collection[str], names: Sequence[str]) -> Iterator[str]:
    """Yields misspelt names in `column_types`; other unknown names may be configured for all seeds of a folder."""
    for each in types:
        meant = None if each in names else nearest(each, [column for column in names if column not in types])
        if meant is not None:
            yield f"`column_types` of the seed {name} names `{each}`, which it does not have: did you mean `{meant}`?"
