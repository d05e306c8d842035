"""Converts a query's rows in Spark so that they can be fetched as an Arrow table."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    DataType,
    MapType,
    NullType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
    YearMonthIntervalType,
)

from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.runs.agate_tables import unique_names

_NOT_IN_ARROW = (CalendarIntervalType, YearMonthIntervalType, VariantType, NullType)
_NESTED = (ArrayType, MapType, StructType)


def fetchable(frame: DataFrame, local_times: bool = True) -> DataFrame:
    """Returns the rows with unique column names, and only types that Spark can pass to Arrow.

    Instants become local times in the session's zone, unless `local_times` is False. The types that Arrow lacks become
    strings: JSON if such a type is within an array, a map or a struct.
    """
    names = unique_names(frame.columns)
    if names != frame.columns:
        frame = frame.toDF(*names)
    expressions = [_expression(quote(field.name), field.dataType, local_times) for field in frame.schema.fields]
    if expressions == [quote(name) for name in names]:
        return frame
    return frame.selectExpr(*(f"{each} as {quote(name)}" for each, name in zip(expressions, names, strict=True)))


def _expression(name: str, kind: DataType, local_times: bool) -> str:
    if any(isinstance(part, _NOT_IN_ARROW) for part in _parts(kind)):
        return f"to_json({name})" if isinstance(kind, _NESTED) else f"cast({name} as string)"
    if local_times and any(isinstance(part, TimestampType) for part in _parts(kind)):
        # Spark passes instants to Arrow in UTC, regardless of the session's zone.
        return f"cast({name} as {_local_time(kind).simpleString()})"
    return name


def _parts(kind: DataType) -> Iterator[DataType]:
    """Yields the type and all types within it."""
    yield kind
    for part in _members(kind):
        yield from _parts(part)


def _members(kind: DataType) -> list[DataType]:
    if isinstance(kind, StructType):
        return [field.dataType for field in kind.fields]
    if isinstance(kind, MapType):
        return [kind.keyType, kind.valueType]
    return [kind.elementType] if isinstance(kind, ArrayType) else []


def _local_time(kind: DataType) -> DataType:
    """Returns the type with local times instead of instants."""
    if isinstance(kind, TimestampType):
        return TimestampNTZType()
    if isinstance(kind, StructType):
        return StructType([StructField(field.name, _local_time(field.dataType)) for field in kind.fields])
    if isinstance(kind, MapType):
        return MapType(_local_time(kind.keyType), _local_time(kind.valueType))
    return ArrayType(_local_time(kind.elementType)) if isinstance(kind, ArrayType) else kind
