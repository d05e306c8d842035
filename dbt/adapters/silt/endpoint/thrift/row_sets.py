"""Renders results as HiveServer2's columns: a value list and a bitmap of nulls for each, nested values as text."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from TCLIService import ttypes

from dbt.adapters.silt.endpoint.core.answers import Column

_MOST_BYTES: Final = 64 * 1024 * 1024
"""The approximate maximum size of a row set, which the client holds in memory as one message."""

_TYPES: Final = {
    **dict.fromkeys(("boolean",), ttypes.TTypeId.BOOLEAN_TYPE),
    **dict.fromkeys(("tinyint", "byte"), ttypes.TTypeId.TINYINT_TYPE),
    **dict.fromkeys(("smallint", "short"), ttypes.TTypeId.SMALLINT_TYPE),
    **dict.fromkeys(("int", "integer"), ttypes.TTypeId.INT_TYPE),
    **dict.fromkeys(("bigint", "long"), ttypes.TTypeId.BIGINT_TYPE),
    "float": ttypes.TTypeId.FLOAT_TYPE,
    "double": ttypes.TTypeId.DOUBLE_TYPE,
    "decimal": ttypes.TTypeId.DECIMAL_TYPE,
    "date": ttypes.TTypeId.DATE_TYPE,
    **dict.fromkeys(("timestamp", "timestamp_ntz"), ttypes.TTypeId.TIMESTAMP_TYPE),
    "binary": ttypes.TTypeId.BINARY_TYPE,
    "array": ttypes.TTypeId.ARRAY_TYPE,
    "map": ttypes.TTypeId.MAP_TYPE,
    "struct": ttypes.TTypeId.STRUCT_TYPE,
    "char": ttypes.TTypeId.CHAR_TYPE,
    "varchar": ttypes.TTypeId.VARCHAR_TYPE,
    "void": ttypes.TTypeId.NULL_TYPE,
}
"""The type of Hive for each type of Spark; all others, such as variants and intervals, are strings."""

_Make = Callable[[Sequence[Any], bytes], ttypes.TColumn]
_PLAIN: Final[dict[int, tuple[pa.DataType, object, _Make]]] = {
    ttypes.TTypeId.BOOLEAN_TYPE: (pa.bool_(), False, lambda v, n: ttypes.TColumn(boolVal=ttypes.TBoolColumn(v, n))),
    ttypes.TTypeId.TINYINT_TYPE: (pa.int8(), 0, lambda v, n: ttypes.TColumn(byteVal=ttypes.TByteColumn(v, n))),
    ttypes.TTypeId.SMALLINT_TYPE: (pa.int16(), 0, lambda v, n: ttypes.TColumn(i16Val=ttypes.TI16Column(v, n))),
    ttypes.TTypeId.INT_TYPE: (pa.int32(), 0, lambda v, n: ttypes.TColumn(i32Val=ttypes.TI32Column(v, n))),
    ttypes.TTypeId.BIGINT_TYPE: (pa.int64(), 0, lambda v, n: ttypes.TColumn(i64Val=ttypes.TI64Column(v, n))),
    ttypes.TTypeId.FLOAT_TYPE: (pa.float64(), 0.0, lambda v, n: ttypes.TColumn(doubleVal=ttypes.TDoubleColumn(v, n))),
    ttypes.TTypeId.DOUBLE_TYPE: (pa.float64(), 0.0, lambda v, n: ttypes.TColumn(doubleVal=ttypes.TDoubleColumn(v, n))),
    ttypes.TTypeId.BINARY_TYPE: (pa.binary(), b"", lambda v, n: ttypes.TColumn(binaryVal=ttypes.TBinaryColumn(v, n))),
}
"""For each type that is not sent as text: Arrow's type, the value of a null, and how a column is made."""


def type_id(spark_type: str) -> int:
    """Returns Hive's type for a type of Spark, as `decimal(12,2)`."""
    word = re.match(r"\w*", spark_type)
    return int(_TYPES.get(word.group() if word else "", ttypes.TTypeId.STRING_TYPE))


def table_schema(columns: Sequence[Column]) -> ttypes.TTableSchema:
    """Returns the description of columns."""
    return ttypes.TTableSchema([_description(at, each) for at, each in enumerate(columns, 1)])


def _description(position: int, column: Column) -> ttypes.TColumnDesc:
    numbers = [int(each) for each in re.findall(r"\d+", column.type)]
    kind, given = type_id(column.type), {}
    if kind == ttypes.TTypeId.DECIMAL_TYPE:
        given = dict(zip(("precision", "scale"), numbers, strict=False))
    elif kind in (ttypes.TTypeId.CHAR_TYPE, ttypes.TTypeId.VARCHAR_TYPE):
        given = dict(zip(("characterMaximumLength",), numbers, strict=False))
    qualifiers = {name: ttypes.TTypeQualifierValue(i32Value=value) for name, value in given.items()}
    entry = ttypes.TPrimitiveTypeEntry(kind, ttypes.TTypeQualifiers(qualifiers) if qualifiers else None)
    described = ttypes.TTypeDesc([ttypes.TTypeEntry(primitiveEntry=entry)])
    return ttypes.TColumnDesc(column.name, described, position, None)


def row_set(columns: Sequence[Column], rows: pa.Table, start: int, most: int) -> ttypes.TRowSet:
    """Returns rows from a position on, fewer than asked for if they are large."""
    page = rows.slice(start, most)
    if page.nbytes > _MOST_BYTES:
        page = page.slice(0, max(1, page.num_rows * _MOST_BYTES // page.nbytes))
    values = [_column(each, page.column(at)) for at, each in enumerate(columns)]
    return ttypes.TRowSet(start, [], values)


def rows_of(found: ttypes.TRowSet) -> int:
    """Returns the number of rows of a row set."""
    if not found.columns:
        return 0
    column = found.columns[0]
    return next(len(part.values) for part in vars(column).values() if part is not None)


def _column(column: Column, values: pa.ChunkedArray) -> ttypes.TColumn:
    nulls = _bitmap(values)
    plain = _PLAIN.get(type_id(column.type))
    if plain is None or pa.types.is_string(values.type):
        return ttypes.TColumn(stringVal=ttypes.TStringColumn(_texts(values), nulls))
    arrow, null, make = plain
    return make(pc.fill_null(values.cast(arrow), pa.scalar(null, arrow)).to_pylist(), nulls)


def _bitmap(values: pa.ChunkedArray) -> bytes:
    """Returns a bit for each row, the lowest first, that is set if the value is null."""
    if not values.null_count:
        return b""
    return np.packbits(values.is_null().to_numpy(), bitorder="little").tobytes()


def _texts(values: pa.ChunkedArray) -> list[str]:
    kind = values.type
    if pa.types.is_timestamp(kind):
        text = pc.utf8_rtrim(values.cast(pa.timestamp("us")).cast(pa.string()), "0")
        return list(pc.fill_null(pc.utf8_rtrim(text, "."), "").to_pylist())
    if pa.types.is_date(kind) or pa.types.is_string(kind):
        return list(pc.fill_null(values.cast(pa.string()), "").to_pylist())
    return ["" if value is None else text_of(value, kind) for value in values.to_pylist()]


def text_of(value: Any, kind: pa.DataType, is_inner: bool = False) -> str:
    """Returns a value as Spark's Thrift server shows it: `{"a":1,"b":[2,null]}` for a struct.

    Args:
        is_inner: whether it is within an array, a map or a struct, where strings have quotes.
    """
    if value is None:
        return "null"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"[{','.join(text_of(each, kind.value_type, True) for each in value)}]"
    if pa.types.is_map(kind):
        pairs = (f"{text_of(key, kind.key_type, True)}:{text_of(each, kind.item_type, True)}" for key, each in value)
        return f"{{{','.join(pairs)}}}"
    if pa.types.is_struct(kind):
        parts = (f'"{each.name}":{text_of(value[each.name], each.type, True)}' for each in kind)
        return f"{{{','.join(parts)}}}"
    return _scalar(value, is_inner)


def _scalar(value: Any, is_inner: bool) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{value}"' if is_inner else value
        case bytes():
            return value.decode(errors="replace")
        case datetime.datetime():
            return (
                value.replace(tzinfo=None).isoformat(sep=" ").rstrip("0").rstrip(".")
                if value.microsecond
                else (value.replace(tzinfo=None).isoformat(sep=" "))
            )
        case datetime.timedelta():
            return _interval(value)
    return format(value, "f") if hasattr(value, "as_tuple") else str(value)


def _interval(value: datetime.timedelta) -> str:
    """Returns a day-time interval as `1 02:03:04.000005000`."""
    sign, whole = ("-", -value) if value < datetime.timedelta() else ("", value)
    minutes, seconds = divmod(whole.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{sign}{whole.days} {hours:02}:{minutes:02}:{seconds:02}.{whole.microseconds:06}000"
