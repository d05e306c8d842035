"""Stages a seed's rows as a temporary view, and checks them before anything is written."""

from __future__ import annotations

import contextlib
import csv
import datetime
import gc
import itertools
import os
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import agate
from dbt_common.clients.agate_helper import BOM, Integer, build_type_tester
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.commands.spark import frames
from dbt.adapters.silt.engine.commands.spark.types import column_type
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.table.schema import CHAR_VARCHAR_KEY
from dbt.adapters.silt.engine.sql.portable_types import TYPES, type_remedy
from dbt.adapters.silt.materializations.seed_checks import seed_file
from dbt.adapters.silt.runs.agate_tables import number_type, to_arrow

_NULLS = frozenset(("", "null"))
_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
_FRACTION = r"(?:\.[0-9]{3}|\.[0-9]{6})?"


@dataclass(frozen=True)
class _Form:
    """A notation that agate always reads as one type: no value in it looks like a type that agate tries earlier.

    Attributes:
        pattern: matches the whole string.
        read: returns agate's value, less its time zone; raises ValueError for an invalid value.
    """

    pattern: re.Pattern[str]
    read: Callable[[str], Any]


_FORMS = (
    # At most as many digits as agate keeps, so that no value is rounded.
    _Form(re.compile(r"-?[0-9]{1,16}(?:\.[0-9]{1,12})?"), Decimal),
    _Form(re.compile(_DAY), datetime.date.fromisoformat),
    _Form(re.compile(f"{_DAY} {_TIME}"), datetime.datetime.fromisoformat),
    _Form(re.compile(f"{_DAY}T{_TIME}{_FRACTION}"), datetime.datetime.fromisoformat),
    _Form(re.compile(f"{_DAY}T{_TIME}{_FRACTION}Z"), lambda text: datetime.datetime.fromisoformat(text[:-1])),
)


def read_table(file: Path, text_columns: Collection[str], delimiter: str) -> agate.Table | None:
    """Reads a file as `dbt_common.clients.agate_helper.from_csv` does.

    Args:
        file: encoded in UTF-8; its first line contains the names of the columns.
        text_columns: the names of columns whose values remain strings.
        delimiter: between the values of a line.

    Returns:
        The table, or None if dbt's own reader must report the problem of the file.
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
    """Disables Python's garbage collector, which would search the rows for cycles repeatedly, in vain."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _table(file: Path, text_columns: Collection[str], delimiter: str) -> agate.Table | None:
    """Returns the table, or None if the first line has no names.

    Raises:
        OSError, TypeError, ValueError, csv.Error: if the file cannot be read in this way.
    """
    written_names, lines = _lines(file, delimiter)
    if not written_names:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `seed_checks` warns of changed names and of misspelt names of types
        names = agate.Table((), written_names, build_type_tester(text_columns)).column_names
    columns = [_read(name, text_columns, texts) for name, texts in zip(names, _columns(lines, len(names)), strict=True)]
    rows = [agate.Row(row, names) for row in zip(*(values for _, values in columns), strict=True)]
    return agate.Table(rows, names, [kind for kind, _ in columns], _is_fork=True)


def _lines(file: Path, delimiter: str) -> tuple[list[str], list[list[str]]]:
    """Returns the first line, and the lines that follow."""
    with file.open(encoding="utf-8") as opened:
        if opened.read(1) != BOM:
            opened.seek(0)
        # From memory, as agate does: a quoted string keeps its line breaks.
        lines = csv.reader(StringIO(opened.read()), delimiter=delimiter)
        return next(lines, []), list(lines)


def _columns(rows: Sequence[list[str]], count: int) -> list[tuple[str | None, ...]]:
    """Returns the values by column; values missing at the end of a line are None.

    Raises:
        ValueError: if a line has more values than the first line has names.
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
    # The type that agate finds for a single value of a form applies to all values of the form.
    tested = distinct if values is None else itertools.islice(values, 1)
    [kind] = tester.run([(text,) for text in tested], (name,))
    if values is None:
        values = {text: kind.cast(text) for text in distinct}
    else:
        _set_zone(values, kind)
    return kind, list(map(values.get, texts))


def _plain_values(texts: Collection[str]) -> dict[str | None, Any] | None:
    """Returns the values by their strings, if all have the same plain form."""
    example = next(iter(texts), "")
    for form in _FORMS:
        if form.pattern.fullmatch(example) and all(map(form.pattern.fullmatch, texts)):
            try:
                return dict(zip(texts, map(form.read, texts), strict=True))
            except ValueError:  # a day that does not exist in any month
                return None
    return None


def _set_zone(values: dict[str | None, Any], kind: agate.data_types.DataType) -> None:
    """Adds the time zone that agate reads to times that were read without it."""
    zone = getattr(kind.cast(next(iter(values))), "tzinfo", None)
    if zone is not None:
        values.update({text: value.replace(tzinfo=zone) for text, value in values.items()})


@dataclass(frozen=True)
class StagedSeed:
    """A seed's rows in the session.

    Attributes:
        name: the seed's name, for messages.
        view: the temporary view, quoted.
        table: the rows as dbt read them.
        types: the type that each column of `column_types` is cast to; dbt has read these columns as strings.
        numbers: the type of every other column of numbers.
    """

    name: str
    view: str
    table: agate.Table
    types: Mapping[str, str]
    numbers: Mapping[str, str]

    @property
    def sized(self) -> dict[str, str]:
        """The types with a length: the table must declare them, because Spark's cast to them is a cast to string."""
        kinds = {column: column_type(kind) for column, kind in self.types.items()}
        return {column: kind.sql_type for column, kind in kinds.items() if CHAR_VARCHAR_KEY in kind.metadata}

    def check_values(self, session: SparkSession) -> None:
        """Checks that every value can be cast to its column's type.

        Raises:
            TypeMismatchError: if a value cannot be cast; the error names its column, row and value.
        """
        for column, kind in self.types.items():
            text = self._misfit(session, column, kind)
            if text is not None:
                row = list(self.table.columns[column].values()).index(text) + 1
                raise errors.TypeMismatchError(
                    f"the seed {self.name} has `{text}` in row {row} of the column `{column}`, which is not of the "
                    f"type {kind}",
                    remedy="Correct the file, or the seed's `column_types`",
                    details={"column": column, "row": row, "value": text, "type": kind},
                )

    def _misfit(self, session: SparkSession, column: str, kind: str) -> str | None:
        """Returns the first string of a column that cannot be cast to the type."""
        name = quote(column)
        query = (
            f"select {name} from {self.view} where {name} is not null and try_cast({name} as {kind}) is null limit 1"
        )
        try:
            row = session.sql(query).first()
        except PySparkException:  # no string can be cast to these types: Spark's own error reports it
            return None
        return None if row is None else row[0]


def stage(session: SparkSession, name: str, view: str, table: agate.Table, types: Mapping[str, str]) -> StagedSeed:
    """Registers a seed's rows as a temporary view.

    Raises:
        InvalidNameError: if the names of two columns differ in case only.
        InvalidSettingError: if `column_types` has an unknown type.
        TypeMismatchError: if an integer has more digits than dbt keeps.
    """
    _check_names(name, table)
    given = {column: types[column] for column in table.column_names if types.get(column)}
    for column, kind in given.items():
        _check_type(name, column, kind)
    rows = to_arrow(table)
    # A single file: a seed is small, and Spark would write a file for each of its cores.
    frames.frame_of_rows(session, rows).coalesce(1).createOrReplaceTempView(view)
    numbers = {
        each.name: number_type(each.type)
        for each, kind in zip(rows.schema, table.column_types, strict=True)
        if isinstance(kind, agate.Number | Integer)
    }
    return StagedSeed(name, view, table, given, numbers)


def read_file(model: Mapping[str, Any], text_columns: Collection[str], delimiter: str) -> agate.Table | None:
    """Returns the rows of a seed's file as dbt would read them, or None if dbt must report why it cannot read them."""
    return read_table(seed_file(model), text_columns, delimiter)


def _check_names(name: str, table: agate.Table) -> None:
    seen: dict[str, str] = {}
    for column in table.column_names:
        before = seen.setdefault(column.lower(), column)
        if before != column:
            raise errors.InvalidNameError(
                f"the seed {name} has the columns `{before}` and `{column}`, whose names differ in case only",
                remedy="Rename one of them in the file's first line",
            )


def _check_type(name: str, column: str, kind: str) -> None:
    try:
        column_type(kind)
    except errors.StatementSyntaxError as error:
        raise errors.InvalidSettingError(
            f"`column_types` of the seed {name} gives the column `{column}` the type `{kind}`, unknown to Spark",
            remedy=type_remedy(kind) or TYPES,
            details={"column": column, "type": kind},
        ) from error
