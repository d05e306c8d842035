"""Converts the rows of streams in PySpark 4.0 to record batches."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.types import StructType

from dbt.adapters.silt.engine.arrow.types import arrow_type
from dbt.adapters.silt.engine.commands.spark.types import kernel_schema
from dbt.adapters.silt.engine.kernel.table import schema as kernel

_ROWS: Final = 10_000


def batches_of(rows: Iterable[Any], schema: StructType) -> Iterator[pa.RecordBatch]:
    """Yields the rows in batches of some thousand."""
    columns = kernel_schema(schema)
    waiting = iter(rows)
    while some := list(itertools.islice(waiting, _ROWS)):
        arrays = [
            pa.array([_plain(row[at], column.type) for row in some], arrow_type(column.type))
            for at, column in enumerate(columns)
        ]
        yield pa.RecordBatch.from_arrays(arrays, names=columns.names)


def _plain(value: Any, data_type: kernel.DataType) -> Any:
    """Returns a value in Arrow's input form: a time with its zone, a struct as a dictionary, a map as pairs."""
    if value is None:
        return None
    match data_type:
        case kernel.StructType():
            return {each.name: _plain(value[at], each.type) for at, each in enumerate(data_type)}
        case kernel.ArrayType():
            return [_plain(each, data_type.element_type) for each in value]
        case kernel.MapType():
            return [(_plain(k, data_type.key_type), _plain(v, data_type.value_type)) for k, v in value.items()]
    is_instant = isinstance(value, datetime) and data_type == kernel.PrimitiveType("timestamp")
    return value.astimezone(timezone.utc) if is_instant else value
