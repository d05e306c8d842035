"""Converts the result of a python model to a DataFrame: every value is kept, or an error names the column."""

from __future__ import annotations

import contextlib
import sys
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.silt.engine.commands.spark import frames
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.materializations.python_models.plain_arrays import plain

logger = AdapterLogger("Silt")

_KINDS = "a DataFrame of Spark, pandas, polars or pandas-on-Spark, an Arrow table, or a DuckDB relation"
_BYTES_PER_PARTITION = 64 * 2**20
_MOST_DIGITS = 38


def to_frame(session: SparkSession, rows: Any, expected: T.StructType | None = None) -> DataFrame:
    """Converts the rows that a python model returned to a Spark DataFrame.

    Times without a zone are in the session's time zone, as in Spark; nanoseconds are truncated to Spark's microseconds;
    a pandas index is not a column. A column that contains only null takes its type from `expected`, or is a string.

    Args:
        session: the session for the DataFrame.
        rows: see `_KINDS`; an object that exports an Arrow stream is read as a table.
        expected: the columns of the target table, if it exists.

    Raises:
        DbtRuntimeError: if the result is not a set of rows, or has a name or a value that a table cannot hold.
    """
    if isinstance(rows, DataFrame):  # embedded or Connect; each attribute of Connect's is a column
        return _distinctly_named(rows)
    if _is_of(rows, "pyspark.pandas") and hasattr(rows, "to_spark"):
        levels = [f"__index_{level}" for level in range(rows.index.nlevels)]
        _warn_of_index(rows.index.names)
        return _distinctly_named(rows.to_spark(index_col=levels).drop(*levels))
    table = _storable(_arrow_table(rows))
    return _without_void(_spark_frame(session, table), expected)


def register(session: SparkSession, frame: DataFrame, view: str) -> None:
    """Registers a DataFrame, possibly of another session of the same Spark, as a temporary view of the session."""
    if frame.sparkSession is session:
        frame.createOrReplaceTempView(view)
        return
    shared = f"silt_{uuid.uuid4().hex}"
    frame.createGlobalTempView(shared)
    try:
        session.table(f"global_temp.{shared}").createOrReplaceTempView(view)
    finally:
        session.catalog.dropGlobalTempView(shared)


def _spark_frame(session: SparkSession, table: pa.Table) -> DataFrame:
    return frames.frame_of_rows(session, table).coalesce(1 + table.nbytes // _BYTES_PER_PARTITION)


def _arrow_table(rows: Any) -> pa.Table:
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(rows, pandas.DataFrame):
        return _of_pandas(rows)
    if _is_of(rows, "polars"):
        rows = rows.collect() if hasattr(rows, "collect") else rows
        _check_polars(rows)
    if isinstance(rows, pa.RecordBatch):
        return _named(pa.Table.from_batches([rows]))
    if not hasattr(rows, "__arrow_c_stream__"):
        raise _no_rows(rows)
    try:
        return _named(pa.RecordBatchReader.from_stream(rows).read_all())
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:  # a single column exports a stream, too
        raise _no_rows(rows) from error


def _check_polars(rows: Any) -> None:
    """Checks that Arrow has the type of each column; polars would export objects as their addresses."""
    for name, kind in getattr(rows, "schema", {}).items():
        if any(word in str(kind) for word in ("Object", "Int128")):
            raise _not_stored(kind, name)


def _no_rows(rows: Any) -> DbtRuntimeError:
    if rows is None:
        return DbtRuntimeError(f"The model returned None: it must return {_KINDS}")
    return DbtRuntimeError(f"The model returned {type(rows).__qualname__}, but must return {_KINDS}")


def _is_of(value: Any, package: str) -> bool:
    return any(f"{kind.__module__}.".startswith(f"{package}.") for kind in type(value).__mro__)


# Names


def _named(table: pa.Table) -> pa.Table:
    _check_names(table.column_names)
    return table


def _distinctly_named(frame: DataFrame) -> DataFrame:
    _check_names(frame.columns)
    return frame


def _check_names(names: Iterable[str]) -> None:
    """Checks that all names differ: Spark, and so the table, ignores case."""
    kept = list(names)
    if not kept:
        raise DbtRuntimeError("The model returned no columns: a table has at least one")
    many = [name for name, times in Counter(name.lower() for name in kept).items() if times > 1]
    if many:
        same = ", ".join(f"`{name}`" for name in kept if name.lower() == many[0])
        raise DbtRuntimeError(
            f"The model returned several columns with the same name ({same}): rename them, or leave some out"
        )


def _text_name(name: Any) -> str:
    """Returns the name of a pandas column as a string; a number becomes its digits."""
    if isinstance(name, tuple):
        raise DbtRuntimeError(
            f"The model returned a column whose name has several levels, {name!r}: "
            "join them, such as `df.columns = ['_'.join(name) for name in df.columns]`"
        )
    if name is None or name != name:
        raise DbtRuntimeError("The model returned a column without a name: name it in `df.columns`")
    return str(name)


# Values


def _of_pandas(rows: Any) -> pa.Table:
    names = [_text_name(name) for name in rows.columns]
    _check_names(names)
    _warn_of_index(rows.index.names)
    return pa.Table.from_arrays(
        [_of_series(name, rows.iloc[:, position]) for position, name in enumerate(names)], names=names
    )


def _of_series(name: str, series: Any) -> pa.ChunkedArray:
    with _of_column(name):
        array = pa.array(series, from_pandas=True)
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _warn_of_index(names: Sequence[Any]) -> None:
    named = [f"`{name}`" for name in names if name is not None]
    if named:
        logger.warning(
            f"The index of the returned DataFrame ({', '.join(named)}) is not a column, and is left out: "
            "return `df.reset_index()` to keep it"
        )


@contextlib.contextmanager
def _of_column(name: str) -> Iterator[None]:
    """Reports errors in the block as errors of the column."""
    try:
        yield
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise DbtRuntimeError(
            f"The column `{name}` that the model returned cannot be stored ({error}): "
            "give all of its values one type, such as by `astype(str)`"
        ) from error


def _storable(table: pa.Table) -> pa.Table:
    """Casts the table to types that Spark supports."""
    columns = [_stored(column, field) for field, column in zip(table.schema, table.columns, strict=True)]
    return pa.Table.from_arrays(columns, names=table.column_names)


def _stored(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    _refuse_unknown_extension(field)
    column = _plain(column, field)
    wanted = _stored_type(column.type, field.name)
    with _of_column(field.name):
        column.validate(full=True)  # such as a decimal with more digits than its type has.
        # Only nanoseconds can be lost: all other casts are to the same or a wider type.
        return column if wanted == column.type else pc.cast(column, wanted, safe=not _has_nanoseconds(column.type))


def _plain(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    with _of_column(field.name):
        chunks = [plain(chunk) for chunk in column.chunks] or [plain(pa.nulls(0, field.type))]
        return pa.chunked_array(chunks)


def _refuse_unknown_extension(field: pa.Field) -> None:
    """Checks that the values of the field are of the type that it shows.

    Raises:
        DbtRuntimeError: if they are the storage of a type unknown to Arrow, such as Python objects.
    """
    name = (field.metadata or {}).get(b"ARROW:extension:name")
    if name is not None:
        raise _not_stored(name.decode(), field.name)
    for at in range(field.type.num_fields):
        _refuse_unknown_extension(field.type.field(at))


_SAME_IN_SPARK: dict[pa.DataType, pa.DataType] = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
}


def _stored_type(kind: pa.DataType, name: str) -> pa.DataType:
    """Returns the type that Spark can read and that holds all values of the given type.

    Raises:
        DbtRuntimeError: if Spark has no such type.
    """
    types = pa.types
    if kind in _SAME_IN_SPARK:
        return _SAME_IN_SPARK[kind]
    if types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if types.is_decimal(kind):
        return _decimal(kind, name)
    if types.is_map(kind):
        return pa.map_(_stored_type(kind.key_type, name), _stored_type(kind.item_type, name))
    if types.is_struct(kind):
        return pa.struct([pa.field(each.name, _stored_type(each.type, name)) for each in kind])
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return pa.list_(_stored_type(kind.value_type, name))
    if not _is_plain(kind):
        raise _not_stored(kind, name)
    return kind


def _is_plain(kind: pa.DataType) -> bool:
    types = pa.types
    is_text = types.is_string(kind) or types.is_large_string(kind)
    is_bytes = types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind)
    is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    return bool(is_text or is_bytes or is_number or types.is_date32(kind) or types.is_null(kind))


def _decimal(kind: pa.DataType, name: str) -> pa.DataType:
    digits, scale = kind.precision + max(-kind.scale, 0), max(kind.scale, 0)
    if digits > _MOST_DIGITS or scale > digits:
        raise _not_stored(kind, name)
    return pa.decimal128(digits, scale)


def _has_nanoseconds(kind: pa.DataType) -> bool:
    if pa.types.is_timestamp(kind):
        return bool(kind.unit == "ns")
    return any(_has_nanoseconds(kind.field(at).type) for at in range(kind.num_fields))


def _not_stored(kind: object, name: str) -> DbtRuntimeError:
    return DbtRuntimeError(
        f"The column `{name}` that the model returned has the type {kind}, which a table cannot hold: "
        "convert it, to text for example"
    )


# Columns of nulls


def _without_void(frame: DataFrame, expected: T.StructType | None) -> DataFrame:
    known = {} if expected is None else {each.name.lower(): each.dataType for each in expected.fields}
    kinds = [_known(frames.with_zone(each.dataType), known.get(each.name.lower())) for each in frame.schema.fields]
    if kinds == [each.dataType for each in frame.schema.fields]:
        return frame
    columns = [F.col(quote(name)).cast(kind).alias(name) for name, kind in zip(frame.columns, kinds, strict=True)]
    return frame.select(*columns)


def _known(kind: T.DataType, expected: T.DataType | None) -> T.DataType:
    """Replaces each void in a type by the type of the table's column, or by string if the table lacks it."""
    if isinstance(kind, T.NullType):
        return T.StringType() if expected is None else expected
    if isinstance(kind, T.ArrayType):
        inner = expected.elementType if isinstance(expected, T.ArrayType) else None
        return T.ArrayType(_known(kind.elementType, inner), kind.containsNull)
    if isinstance(kind, T.MapType):
        inner = expected.valueType if isinstance(expected, T.MapType) else None
        return T.MapType(_known(kind.keyType, None), _known(kind.valueType, inner), kind.valueContainsNull)
    if isinstance(kind, T.StructType):
        fields = expected.fields if isinstance(expected, T.StructType) else []
        named = {each.name.lower(): each.dataType for each in fields}
        return T.StructType(
            [T.StructField(f.name, _known(f.dataType, named.get(f.name.lower())), f.nullable) for f in kind.fields]
        )
    return kind
