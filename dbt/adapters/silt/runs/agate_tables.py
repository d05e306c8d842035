"""Exact conversion between Arrow tables (Spark's side) and agate tables (dbt's)."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, getcontext
from typing import Any

import agate
import pyarrow as pa
from dbt_common.clients.agate_helper import Integer, ISODateTime, Number
from dbt_common.utils.encoding import ForgivingJSONEncoder

from dbt.adapters.silt.engine.kernel.errors import TypeMismatchError

_LARGEST_BIGINT = 2**63 - 1
_DECIMAL_DIGITS = 38


def unique_names(names: Iterable[str]) -> list[str]:
    """Returns the names with a number after each repeated name, as dbt names the columns of a result."""
    seen: dict[str, int] = {}
    unique = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        unique.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return unique


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """Returns the rows of an Arrow table as Python values; instants become local times in the session's zone."""
    columns = [[_wall_clock(value) for value in _python_values(column)] for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else []


def to_agate(table: pa.Table) -> agate.Table:
    """Converts an Arrow table to an agate table, with column types from the Arrow types, not from the values.

    A column of bytes, arrays, maps or structs becomes text: bytes in hexadecimal, the other types as JSON. So does a
    column with days or times outside of the years 1 to 9999, which Python cannot represent.
    """
    rows = rows_of(table)
    types = table.schema.types
    kinds = [_column_type(each, [row[at] for row in rows]) for at, each in enumerate(types)]
    values = [[_agate_value(*each) for each in zip(row, kinds, types, strict=True)] for row in rows]
    return agate.Table(values, unique_names(table.column_names), kinds)


def of_rows(rows: Sequence[Mapping[str, Any]]) -> agate.Table:
    """Returns an agate table with these rows, at least one, each by the names of its columns."""
    return to_agate(pa.table({name: [row[name] for row in rows] for name in rows[0]}))


def to_arrow(table: agate.Table) -> pa.Table:
    """Converts a seed's agate table to an Arrow table, with the types that dbt found in the file and exact values.

    Whole numbers become bigint (decimal if they are too large), other numbers double; times without a zone get no zone.

    Raises:
        TypeMismatchError: if a whole number has more digits than dbt keeps.
    """
    names = [str(name) for name in table.column_names]
    # By rows: agate's own columns ask each row for a single value.
    columns = list(zip(*(row.values() for row in table.rows), strict=True)) or [()] * len(names)
    arrays = []
    for name, values, kind in zip(names, columns, table.column_types, strict=True):
        if isinstance(kind, agate.Number | Integer):
            _check_digits(name, values)
        arrays.append(_arrow_array(kind, values))
    return pa.Table.from_arrays(arrays, names=names)


def number_type(kind: pa.DataType) -> str:
    """Returns the SQL type of numbers that have this type from `to_arrow`: bigint, decimal(38,0) or double."""
    if pa.types.is_floating(kind):
        return "double"
    return "bigint" if pa.types.is_integer(kind) else "decimal(38,0)"


def _python_values(column: pa.ChunkedArray) -> list[Any]:
    """Returns the values of a column; if Python cannot represent a day or time in it, all days and times as text."""
    try:
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        values = column.cast(_with_texts(column.type)).to_pylist()
    return values


def _with_texts(kind: pa.DataType) -> pa.DataType:
    """Returns the type with text instead of days, times and durations."""
    if pa.types.is_temporal(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _with_texts(each.type)) for each in kind])
    if pa.types.is_map(kind):
        return pa.map_(_with_texts(kind.key_type), _with_texts(kind.item_type))
    return pa.list_(_with_texts(kind.value_type)) if pa.types.is_list(kind) else kind


def _column_type(kind: pa.DataType, values: Sequence[Any]) -> agate.data_types.DataType:
    """Returns the agate type of a column of this Arrow type with these values."""
    found = _agate_type(kind)
    return _agate_type(pa.string()) if any(isinstance(value, str) for value in values) else found


def _wall_clock(value: Any) -> Any:
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.replace(tzinfo=None)
    return value


def _agate_type(kind: pa.DataType) -> agate.data_types.DataType:
    """Returns the agate type that can represent every value of an Arrow type."""
    if pa.types.is_boolean(kind):
        return agate.Boolean()
    if pa.types.is_integer(kind):
        return Integer()
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return Number()
    if pa.types.is_timestamp(kind):
        return ISODateTime()
    if pa.types.is_date(kind):
        return agate.Date()
    if pa.types.is_duration(kind):
        return agate.TimeDelta()
    # Without null_values, which make agate read the texts "null", "n/a" and "" as NULL.
    return agate.Text(null_values=(), cast_nulls=False)


def _agate_value(value: Any, kind: agate.data_types.DataType, arrow: pa.DataType) -> Any:
    if value is None or not isinstance(kind, agate.Text):
        return Decimal(repr(value)) if isinstance(value, float) else value
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime.time):
        return value.isoformat()
    return _json(value, arrow)


def _json(value: Any, kind: pa.DataType) -> str:
    """Returns a value of an Arrow type as JSON, with all digits of its decimals; a map becomes an object."""
    if value is None or not pa.types.is_nested(kind):
        return format(value, "f") if isinstance(value, Decimal) else json.dumps(value, cls=ForgivingJSONEncoder)
    if pa.types.is_map(kind):
        return _object((_key(key, kind.key_type), _json(entry, kind.item_type)) for key, entry in value)
    if pa.types.is_struct(kind):
        return _object((each.name, _json(value[each.name], each.type)) for each in kind)
    return "[" + ", ".join(_json(each, kind.value_type) for each in value) + "]"


def _object(members: Iterable[tuple[str, str]]) -> str:
    return "{" + ", ".join(f"{json.dumps(name)}: {text}" for name, text in members) + "}"


def _key(key: Any, kind: pa.DataType) -> str:
    """Returns a key of a map as the name of a JSON member; for a key that is not a string, its JSON without quotes."""
    return key if isinstance(key, str) else _json(key, kind).strip('"')


def _arrow_array(kind: agate.data_types.DataType, values: Sequence[Any]) -> pa.Array:
    if isinstance(kind, agate.Number | Integer):
        return _numbers(values)
    if isinstance(kind, agate.Boolean):
        return pa.array(values, pa.bool_())
    if isinstance(kind, agate.DateTime):
        return _times(values)
    if isinstance(kind, agate.Date):
        return pa.array(values, pa.date32())
    return pa.array([None if value is None else str(value) for value in values], pa.string())


def _numbers(values: Sequence[Any]) -> pa.Array:
    if not all(_is_whole(value) for value in values if value is not None):
        return pa.array([None if value is None else _double(value) for value in values], pa.float64())
    whole = [None if value is None else int(value) for value in values]
    if all(value is None or -_LARGEST_BIGINT <= value <= _LARGEST_BIGINT for value in whole):
        return pa.array(whole, pa.int64())
    return pa.array([None if value is None else Decimal(value) for value in whole], pa.decimal128(_DECIMAL_DIGITS))


def _double(value: Decimal | int) -> float:
    """Returns the nearest double; NaN for `snan`, which agate accepts as a number."""
    return math.nan if Decimal(value).is_nan() else float(value)


def _check_digits(name: str, values: Sequence[Any]) -> None:
    """Raises TypeMismatchError for a whole number whose last digits agate rounded away when it read the file."""
    kept = getcontext().prec
    for value in values:
        if not isinstance(value, Decimal) or value.adjusted() < kept:
            continue
        _, digits, exponent = value.as_tuple()
        if len(digits) == kept and exponent != 0:
            raise TypeMismatchError(
                f"the column `{name}` has a number of {value.adjusted() + 1} digits, but only {kept} would be kept",
                remedy=f"Set `column_types: {{{name}: string}}` for the seed, or decimal(38, 0)",
                details={"column": name},
            )


def _is_whole(value: Decimal | int) -> bool:
    """Returns whether a number of a file is an integer that a column of integers or decimals can hold."""
    number = Decimal(value)
    return number.is_finite() and number == number.to_integral_value() and number.adjusted() < _DECIMAL_DIGITS


def _times(values: Sequence[datetime.datetime | None]) -> pa.Array:
    """Returns times without a zone, or instants if the file names zones (a time without a zone is then in UTC)."""
    if not any(value is not None and value.tzinfo is not None for value in values):
        return pa.array(values, pa.timestamp("us"))
    utc = datetime.timezone.utc
    instants = [value if value is None or value.tzinfo else value.replace(tzinfo=utc) for value in values]
    return pa.array(instants, pa.timestamp("us", tz="UTC"))
