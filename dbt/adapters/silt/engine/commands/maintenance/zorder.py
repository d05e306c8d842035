"""Arranges rows in Z-order: rows that are close to each other in several columns are written to the same files.

Each column's values are numbered by their rank in a sample of the column, so that equally many rows have each number;
null has its own number, before all values. The numbers' bits are interleaved, the highest first, and ranges of the
result divide the rows among files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.spark import frames
from dbt.adapters.silt.engine.kernel.errors import ColumnNotFoundError, UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.files.statistics import indexed_columns
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.clustering import Path, column_at
from dbt.adapters.silt.engine.kernel.table.schema import DataType, DecimalType, PrimitiveType, StructType

_MOST_COLUMNS = 21
_MOST_BITS = 10
_KEY_BITS = 63
"""The number of bits of a BIGINT without the sign bit."""

_SAMPLE_ROWS = 100_000
_PREFIX = 256
"""The first characters of a string, or bytes of a binary value, that determine its rank."""

_KEY, _CURVE, _TIE = "__silt_key_", "__silt_curve", "__silt_tie"


def check_columns(snapshot: Snapshot, columns: Sequence[tuple[str, ...]]) -> None:
    """Checks that the table can be arranged in a Z-order of these columns.

    Args:
        columns: names, or paths of names into structs.

    Raises:
        ColumnNotFoundError: if a column does not exist.
        UnsupportedStatementError: if a column has no order or no statistics, or is a partition column, or if the
            columns are too many.
    """
    if len(columns) > _MOST_COLUMNS:
        raise UnsupportedStatementError(
            f"ZORDER BY lists {len(columns)} columns: with more than {_MOST_COLUMNS}, no column would be in order",
            remedy="Name the few columns that queries filter by",
            table=snapshot.table,
        )
    indexed = {each.path for each in indexed_columns(snapshot.schema, snapshot.properties, snapshot.partition_columns)}
    partitioning = {name.lower() for name in snapshot.partition_columns}
    for path in columns:
        name = ".".join(path)
        if path[0].lower() in partitioning:
            raise UnsupportedStatementError(
                f"`{name}` is a partition column: its values never share a file",
                remedy="Leave it out of ZORDER BY",
                table=snapshot.table,
            )
        physical, data_type = _found(snapshot.schema, path, snapshot.table)
        if _key_of(data_type) is None:
            raise UnsupportedStatementError(
                f"the column `{name}` of type {data_type.sql_name} cannot be sorted",
                remedy="Leave it out of ZORDER BY",
                table=snapshot.table,
            )
        if physical not in indexed:
            raise UnsupportedStatementError(
                f"the column `{name}` has no statistics, so sorting by it would not help queries",
                remedy="Add it to `delta.dataSkippingStatsColumns`, or leave it out of ZORDER BY",
                table=snapshot.table,
            )


def arranged(df: DataFrame, schema: StructType, columns: Sequence[tuple[str, ...]], rows: int, files: int) -> DataFrame:
    """Returns the rows in a partition of Spark for each file; runs a job over a sample of the columns.

    Args:
        df: rows with the table's columns.
        schema: the table's schema.
        columns: columns that `check_columns` accepts.
        rows: the number of rows.
        files: the number of files.
    """
    if len(columns) == 1:
        return _ranged(df, [frames.column(columns[0])], files)
    keys = [f"{_KEY}{position}" for position in range(len(columns))]
    with_keys = df.select("*", *(_key(schema, path).alias(name) for path, name in zip(columns, keys, strict=True)))
    bits = min(_MOST_BITS, _KEY_BITS // len(columns))
    bounds = _bounds(with_keys.select(*keys), rows, bits)
    spread = _array([_spread(number, len(columns)) for number in range(1 << bits)], "array<bigint>")
    parts = [
        F.shiftleft(F.get(spread, _number(F.col(name), bounds[name], bits)), len(columns) - 1 - position)
        for position, name in enumerate(keys)
    ]
    curve = parts[0]
    for part in parts[1:]:
        curve = curve.bitwiseOR(part)
    placed = with_keys.select(*map(quote, df.columns), curve.alias(_CURVE))
    return _ranged(placed, [F.col(_CURVE)], files).select(*map(quote, df.columns))


def _ranged(df: DataFrame, order: Sequence[Column], files: int) -> DataFrame:
    """Returns the rows in this order; equal rows may be divided among files too, by their current order."""
    tied = df.withColumn(_TIE, F.monotonically_increasing_id())
    ranged = tied.repartitionByRange(files, *order, _TIE).sortWithinPartitions(*order, _TIE)
    return ranged.drop(_TIE)


def _found(schema: StructType, path: Path, table: str) -> tuple[Path, DataType]:
    """Returns the column's path by physical names, and its type."""
    found = column_at(schema, path)
    if found is None:
        raise ColumnNotFoundError(f"the column `{'.'.join(path)}` does not exist", table=table)
    return found


def _key(schema: StructType, path: tuple[str, ...]) -> Column:
    _, data_type = _found(schema, path, "")
    key = _key_of(data_type)
    assert key is not None
    return key(frames.column(path))


def _key_of(data_type: DataType) -> Callable[[Column], Column] | None:
    """Returns an expression that orders the type's values and survives JSON, or None if they have no order."""
    if isinstance(data_type, DecimalType):
        return lambda column: column
    return _KEYS.get(data_type.name) if isinstance(data_type, PrimitiveType) else None


_KEYS: Final[Mapping[str, Callable[[Column], Column]]] = {
    "string": lambda column: F.substring(column.cast("string"), 1, _PREFIX),
    "binary": lambda column: F.hex(F.substring(column, 1, _PREFIX)),
    "boolean": lambda column: column.cast("int").cast("bigint"),
    "date": lambda column: F.unix_date(column).cast("bigint"),
    "timestamp": F.unix_micros,
    "timestamp_ntz": lambda column: F.timestamp_diff("MICROSECOND", F.expr("timestamp_ntz'1970-01-01'"), column),
    **dict.fromkeys(("byte", "short", "integer", "long"), lambda column: column.cast("bigint")),
    **dict.fromkeys(("float", "double"), lambda column: column.cast("double")),
}


def _bounds(keys: DataFrame, rows: int, bits: int) -> dict[str, Column]:
    """Returns, by column, the ordered values that divide it into ranges of equally many rows of a sample."""
    sample = keys if rows <= _SAMPLE_ROWS else keys.sample(_SAMPLE_ROWS / rows, 0)
    ranges = (1 << bits) - 1
    found = sample.agg(*(F.sort_array(F.collect_list(name)).alias(name) for name in keys.columns))
    picked = found.select(
        *(
            F.to_json(
                F.expr(f"transform(sequence(1, {ranges - 1}), i -> get({name}, int(i * size({name}) div {ranges})))")
            )
            for name in keys.columns
        )
    )
    (texts,) = picked.collect()
    types = [field.dataType.simpleString() for field in keys.schema.fields]
    return {
        name: F.from_json(F.lit(text), f"array<{kind}>")
        for name, text, kind in zip(keys.columns, texts, types, strict=True)
    }


def _number(key: Column, bounds: Column, bits: int) -> Column:
    """Returns 0 for null, else 1 plus the number of bounds that are at most the key, by binary search."""
    steps = _array([1 << bit for bit in reversed(range(bits))], "array<int>")
    below = F.aggregate(
        steps,
        F.lit(0),
        lambda found, step: F.when(F.get(bounds, found + step - 1) <= key, found + step).otherwise(found),
    )
    return F.when(key.isNull(), 0).otherwise(below + 1)


def _array(values: Sequence[int], kind: str) -> Column:
    return F.from_json(F.lit(json.dumps(values)), kind)


def _spread(number: int, distance: int) -> int:
    """Moves each bit of the number from position p to position p * distance."""
    return sum(1 << position * distance for position in range(number.bit_length()) if number >> position & 1)
