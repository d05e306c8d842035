"""Reads the first rows of a table for `silt show --rows`, and formats the values of rows."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from dbt.adapters.silt.engine.arrow.read import TableRead, condition
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.rows.scan import ArrowScan

NULL = "null"


@dataclass(frozen=True)
class ShownRows:
    """Rows of a table.

    Attributes:
        names: the names of the columns.
        numbers: for each column whether it contains numbers.
        rows: their values, converted for JSON.
    """

    names: tuple[str, ...]
    numbers: tuple[bool, ...]
    rows: tuple[tuple[Any, ...], ...]

    @classmethod
    def of(cls, found: pa.Table) -> ShownRows:
        """Converts an Arrow table."""
        values = [_plain_values(column) for column in found.columns]
        numbers = tuple(_is_number(field.type) for field in found.schema)
        return cls(tuple(found.column_names), numbers, tuple(zip(*values, strict=True)))

    def documents(self) -> list[dict[str, Any]]:
        """Returns the rows as JSON objects."""
        return [dict(zip(self.names, row, strict=True)) for row in self.rows]

    def cells(self) -> list[list[str]]:
        """Returns the rows as strings."""
        return [[cell(each) for each in row] for row in self.rows]


def first_rows(log: DeltaLog, snapshot: Snapshot, limit: int, columns: str | None, where: str | None) -> ShownRows:
    """Reads the first rows of a table.

    Args:
        columns: names separated by commas; by default all.
        where: a condition in SQL.

    Raises:
        UnsupportedStatementError, ColumnNotFoundError: if the condition or the columns cannot be read.
        TableDamagedError: if a file cannot be read.
    """
    names = None if columns is None else [name.strip() for name in columns.split(",")]
    return ShownRows.of(_read(log, snapshot, names, where).head(limit))


def chosen_rows(log: DeltaLog, snapshot: Snapshot, columns: Sequence[str], where: str | None) -> pa.Table:
    """Reads these columns of the rows that a condition selects; raises as `first_rows`."""
    return _read(log, snapshot, columns, where).whole()


def _read(log: DeltaLog, snapshot: Snapshot, columns: Sequence[str] | None, where: str | None) -> TableRead:
    return TableRead(log, snapshot, ArrowScan.of(snapshot, columns, condition(where, snapshot, log.name)))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _plain_values(column: pa.ChunkedArray) -> list[Any]:
    """Returns the values as JSON values; days and times as strings, of any year."""
    if pa.types.is_float32(column.type):
        # As a double, 0.1 would be 0.10000000149011612.
        return [_plain_scalar(None if text is None else float(text)) for text in column.cast(pa.string()).to_pylist()]
    found = column.cast(_with_leaves(column.type, lambda kind: pa.string() if pa.types.is_temporal(kind) else kind))
    try:
        values = found.to_pylist()
    except UnicodeDecodeError:  # a damaged file can hold any bytes in a text
        as_bytes = _with_leaves(found.type, lambda kind: pa.binary() if pa.types.is_string(kind) else kind)
        values = found.cast(as_bytes).to_pylist()
    return [_plain(value, found.type) for value in values]


def _with_leaves(kind: pa.DataType, leaf: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Returns a type with another type in place of each type that contains no other."""
    if pa.types.is_struct(kind):
        members = (kind.field(at) for at in range(kind.num_fields))
        return pa.struct([pa.field(member.name, _with_leaves(member.type, leaf)) for member in members])
    if pa.types.is_map(kind):
        return pa.map_(_with_leaves(kind.key_type, leaf), _with_leaves(kind.item_type, leaf))
    return pa.list_(_with_leaves(kind.value_type, leaf)) if pa.types.is_list(kind) else leaf(kind)


def _plain(value: Any, kind: pa.DataType) -> Any:
    """Returns a value of an Arrow type as a JSON value; a map becomes an object."""
    if isinstance(value, bytes) and pa.types.is_string(kind):
        return value.decode(errors="replace")
    if value is None or not pa.types.is_nested(kind):
        return _plain_scalar(value)
    if pa.types.is_map(kind):
        return {_key(_plain(key, kind.key_type)): _plain(each, kind.item_type) for key, each in value}
    if pa.types.is_struct(kind):
        return {member.name: _plain(value[member.name], member.type) for member in kind}
    return [_plain(each, kind.value_type) for each in value]


def _plain_scalar(value: Any) -> Any:
    match value:
        case bytes():
            return value.hex()
        case Decimal():
            return format(value, "f")
        case float() if not math.isfinite(value):
            return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    return value


def _key(value: Any) -> str:
    """Returns a key of a map as the name of a member."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def cell(value: Any) -> str:
    """Returns the text of a JSON value."""
    if value is None:
        return NULL
    if isinstance(value, bool | dict | list):
        return json.dumps(value, ensure_ascii=False)
    return str(value)
