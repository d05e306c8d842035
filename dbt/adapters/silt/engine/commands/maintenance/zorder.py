"""Puts rows into Z-order: rows that are near each other in several columns at once come into the same files.

Each column's values are numbered by their rank in a sample of the column, so that equally many rows have each
number; null has a number of its own, before all others. The numbers' bits are interleaved, the highest first, and rows
are divided among files by the ranges of the result.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.kernel.errors import ColumnNotFoundError, UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.files.statistics import indexed_columns
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.schema import DataType, DecimalType, PrimitiveType, StructType

_MOST_COLUMNS = 21
_MOST_BITS = 10
_KEY_BITS = 63
"""Of a BIGINT, without its sign."""

_SAMPLE_ROWS = 100_000
_PREFIX = 256
"""Characters of a string, bytes of a binary value, that count."""

_KEY, _CURVE, _TIE = "__silt_key_", "__silt_curve", "__silt_tie"


def check_columns(snapshot: Snapshot, columns: Sequence[tuple[str, ...]]) -> None:
    """Passes where the table can be put in a Z-order of these columns.

    Args:
        columns: names, or paths of names into structs.

    Raises:
        ColumnNotFoundError: there is no such column.
        UnsupportedStatementError: a column has no order or no statistics, or is a partition column.
    """
    if len(columns) > _MOST_COLUMNS:
        raise UnsupportedStatementError(
            f"ZORDER BY of {len(columns)} columns: more than {_MOST_COLUMNS} would order by none of them",
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
                f"the column `{name}` of type {data_type.sql_name} has no order",
                remedy="Leave it out of ZORDER BY",
                table=snapshot.table,
            )
        if physical not in indexed:
            raise UnsupportedStatementError(
                f"the column `{name}` has no statistics, so that its order would help no query",
                remedy="Name it in `delta.dataSkippingStatsColumns`, or leave it out of ZORDER BY",
                table=snapshot.table,
            )


def arranged(df: DataFrame, schema: StructType, columns: Sequence[tuple[str, ...]], rows: int, files: int) -> DataFrame:
    """The rows in as many of Spark's partitions as there are to be files; runs a job over a sample of the columns.

    Args:
        df: has the table's columns.
        schema: the table's.
        columns: as `check_columns` has passed them.
        rows: how many there are.
    """
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
    # Many rows of one place on the curve are divided among files too, by where they stand now.
    placed = with_keys.select(*map(quote, df.columns), curve.alias(_CURVE), F.monotonically_increasing_id().alias(_TIE))
    ranged = placed.repartitionByRange(files, _CURVE, _TIE).sortWithinPartitions(_CURVE, _TIE)
    return ranged.select(*map(quote, df.columns))


def _found(schema: StructType, path: tuple[str, ...], table: str) -> tuple[tuple[str, ...], DataType]:
    """The column's path by physical names, and its type."""
    physical: list[str] = []
    inside: DataType = schema
    for name in path:
        member = inside.field(name) if isinstance(inside, StructType) else None
        if member is None:
            raise ColumnNotFoundError(f"there is no column `{'.'.join(path)}`", table=table)
        physical.append(member.physical_name)
        inside = member.type
    return tuple(physical), inside


def _key(schema: StructType, path: tuple[str, ...]) -> Column:
    _, data_type = _found(schema, path, "")
    key = _key_of(data_type)
    assert key is not None
    return key(F.col(".".join(map(quote, path))))


def _key_of(data_type: DataType) -> Callable[[Column], Column] | None:
    """The expression that orders the type's values and passes through JSON; None where they have no order."""
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
    """By column, the values that part it into ranges of equally many rows of a sample, in order."""
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
    """0 for null; else one more than the number of bounds that are not above the key, found by halving."""
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
    """The number with each of its bits moved so many times as far up."""
    return sum(1 << position * distance for position in range(number.bit_length()) if number >> position & 1)
