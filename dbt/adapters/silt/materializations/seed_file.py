"""Reads the file of a seed to the table that dbt itself makes of it: the same names, types and values, in less time.

agate tests each value of a column for each type, and then casts it once more. Here each distinct value is looked at
once, by agate's own types; only values that are all written in one plain form are read without them.
"""

from __future__ import annotations

import contextlib
import csv
import datetime
import gc
import itertools
import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import agate
from dbt_common.clients.agate_helper import BOM, build_type_tester

_NULLS = frozenset(("", "null"))
_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
_FRACTION = r"(?:\.[0-9]{3}|\.[0-9]{6})?"


@dataclass(frozen=True)
class _Form:
    """A way to write values, all of which agate takes for one type, and for none that it tries before.

    Attributes:
        pattern: of the whole text.
        read: gives agate's value, less its time zone; raises ValueError for what is no value after all.
    """

    pattern: re.Pattern[str]
    read: Callable[[str], Any]


_FORMS = (
    # As many digits as agate keeps, so that none is rounded.
    _Form(re.compile(r"-?[0-9]{1,16}(?:\.[0-9]{1,12})?"), Decimal),
    _Form(re.compile(_DAY), datetime.date.fromisoformat),
    _Form(re.compile(f"{_DAY} {_TIME}"), datetime.datetime.fromisoformat),
    _Form(re.compile(f"{_DAY}T{_TIME}{_FRACTION}"), datetime.datetime.fromisoformat),
    _Form(re.compile(f"{_DAY}T{_TIME}{_FRACTION}Z"), lambda text: datetime.datetime.fromisoformat(text[:-1])),
)


def read_table(file: Path, text_columns: Collection[str], delimiter: str) -> agate.Table | None:
    """Reads a file as `dbt_common.clients.agate_helper.from_csv` does.

    Args:
        file: in UTF-8, with a line of names.
        text_columns: the names of columns whose values stay the texts that they are.
        delimiter: between the values of a line.

    Returns:
        The table; None where dbt's own reading must say what is wrong with the file.
    """
    try:
        with _without_collector():
            table = _table(file, text_columns, delimiter)
    except (OSError, TypeError, ValueError, csv.Error):
        return None
    if table is not None:
        table.original_abspath = os.path.abspath(file)  # as dbt does, for macros that read the file
    return table


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """Keeps Python's collector from searching the rows for cycles, of which they have none, again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _table(file: Path, text_columns: Collection[str], delimiter: str) -> agate.Table | None:
    """Returns the table; None where the first line has no names.

    Raises:
        OSError, TypeError, ValueError, csv.Error: the file cannot be read so.
    """
    written_names, lines = _lines(file, delimiter)
    if not written_names:
        return None
    names = agate.Table((), written_names, build_type_tester(text_columns)).column_names  # warns as for the whole file
    columns = [_read(name, text_columns, texts) for name, texts in zip(names, _columns(lines, len(names)), strict=True)]
    rows = [agate.Row(row, names) for row in zip(*(values for _, values in columns), strict=True)]
    return agate.Table(rows, names, [kind for kind, _ in columns], _is_fork=True)


def _lines(file: Path, delimiter: str) -> tuple[list[str], list[list[str]]]:
    """Returns the first line, and those that follow."""
    with file.open(encoding="utf-8") as opened:
        if opened.read(1) != BOM:
            opened.seek(0)
        # From memory, as agate does: a quoted text keeps the ends of its lines.
        lines = csv.reader(StringIO(opened.read()), delimiter=delimiter)
        return next(lines, []), list(lines)


def _columns(rows: Sequence[list[str]], count: int) -> list[tuple[str | None, ...]]:
    """Returns the values by column; those that a line lacks at its end are None.

    Raises:
        ValueError: a line has more values than there are names.
    """
    lengths = set(map(len, rows))
    if max(lengths, default=0) > count:
        raise ValueError(f"a line has more than {count} values")
    if not rows:
        return [()] * count
    if lengths == {count}:
        return list(zip(*rows, strict=True))
    return list(zip(*([*row, *[None] * (count - len(row))] for row in rows), strict=True))


def _read(
    name: str, text_columns: Collection[str], texts: Sequence[str | None]
) -> tuple[agate.data_types.DataType, Sequence[Any]]:
    """Returns the type of a column, and its values."""
    tester = build_type_tester([name] if name in text_columns else [])
    distinct = {text for text in texts if text is not None}
    values = None if name in text_columns else _plain_values(distinct - _NULLS)
    # What agate takes one value of a form for, it takes all for.
    tested = distinct if values is None else itertools.islice(values, 1)
    [kind] = tester.run([(text,) for text in tested], (name,))
    if values is None:
        values = {text: kind.cast(text) for text in distinct}
    else:
        _set_zone(values, kind)
    return kind, list(map(values.get, texts))


def _plain_values(texts: Collection[str]) -> dict[str | None, Any] | None:
    """Returns the values, by their texts, where all are written in one plain form; otherwise None."""
    example = next(iter(texts), "")
    for form in _FORMS:
        if form.pattern.fullmatch(example) and all(map(form.pattern.fullmatch, texts)):
            try:
                return dict(zip(texts, map(form.read, texts), strict=True))
            except ValueError:  # a day that no month has
                return None
    return None


def _set_zone(values: dict[str | None, Any], kind: agate.data_types.DataType) -> None:
    """Puts the time zone that agate reads into times that were read without it."""
    zone = getattr(kind.cast(next(iter(values))), "tzinfo", None)
    if zone is not None:
        values.update({text: value.replace(tzinfo=zone) for text, value in values.items()})
