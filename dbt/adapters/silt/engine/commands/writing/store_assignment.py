"""Assigns a query's columns to the table's, by Spark's rules of store assignment.

The rules are Spark's ANSI store assignment, regardless of `spark.sql.ansi.enabled`. In addition, strings may be stored
in any simple type, as seeds and snapshots need. A value that the column cannot hold is counted by a check, never stored
as null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.spark.types import kernel_schema
from dbt.adapters.silt.engine.commands.writing import generated, rules
from dbt.adapters.silt.engine.commands.writing.checks import Check, counted, shown
from dbt.adapters.silt.engine.commands.writing.conversion import Conversion, conversion, fitted
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.identifiers import listed
from dbt.adapters.silt.engine.kernel.table.schema import ArrayType, DataType, MapType, StructField, StructType, nullable
from dbt.adapters.silt.engine.kernel.table.text_lengths import declared_type, distributed, gathered, has_lengths

_LOST = "__silt_lost_"
_SOURCE = "__silt_source_"


@dataclass(frozen=True)
class Assigned:
    """Rows in the table's columns.

    Args:
        df: rows with the table's columns in order, then the columns that only the checks use.
        checks: checks that no value was lost.
    """

    df: DataFrame
    checks: tuple[Check, ...]


def assign(
    df: DataFrame, schema: StructType, table: str, by_name: bool = False, columns: Sequence[str] | None = None
) -> Assigned:
    """Converts the rows of a query to rows of a table.

    A generated column of the table that the query does not provide is computed; any other missing column gets its
    default, which is null unless it was set.

    Args:
        df: the query.
        schema: the table's schema; its NOT NULL is checked by `checks.table_checks`.
        table: the table's name, for messages.
        by_name: whether columns, and members of structs, are matched by name, in any case; else by position.
        columns: the table's columns to which the query's columns are assigned by position; by default all.

    Raises:
        ColumnNotFoundError: if the query has columns that the table lacks, or another number of columns.
        TypeMismatchError: if a column's type cannot be stored in the table's column.
    """
    source = kernel_schema(df.schema)
    if df.isLocal():
        # A statement has few literal rows: write a single file, not a file for each core.
        df = df.coalesce(1)
    if by_name:
        pairs = _by_name(source, schema, table)
    else:
        pairs = _by_position(source, schema, schema.names if columns is None else columns, table)
    if _already_fits(pairs, source, schema):
        return Assigned(df, ())
    renamed = df.toDF(*(f"{_SOURCE}{position}" for position in range(len(source))))
    missing = {pair.target.name: None for pair in pairs if pair.source is None and pair.target.generation_expression}
    given = [pair for pair in pairs if pair.target.name not in missing]
    assigned = _converted(renamed, given, table, by_name)
    return replace(assigned, df=generated.computed(assigned.df, schema, missing, table))


def evolve(schema: StructType, source: StructType) -> StructType:
    """Returns the table's schema with the source's new columns appended as nullable, also within structs."""
    return gathered(_evolved_struct(distributed(schema), distributed(source)))


@dataclass(frozen=True)
class _Pair:
    """A column of the table, and the position and field of the query's column for it, if the query has this column."""

    target: StructField
    position: int | None
    source: StructField | None


def _by_position(source: StructType, schema: StructType, columns: Sequence[str], table: str) -> list[_Pair]:
    if len(source) != len(columns):
        what = "too many columns" if len(source) > len(columns) else "too few columns"
        raise errors.ColumnNotFoundError(
            f"the query has {what}: {listed(source.names)} for the table's {listed(columns)}",
            remedy="Name the columns to insert into, or let the query return as many columns as the table has",
            table=table,
        )
    positions: dict[str, int] = {}
    for position, name in enumerate(columns):
        key = schema.require(name, table).name.lower()
        if key in positions:
            raise errors.ColumnNotFoundError(f"the column `{name}` is named twice", remedy="Name it once", table=table)
        positions[key] = position
    return _pairs(source, schema, positions)


def _by_name(source: StructType, schema: StructType, table: str) -> list[_Pair]:
    positions: dict[str, int] = {}
    for position, name in enumerate(source.names):
        if name not in schema:
            raise errors.ColumnNotFoundError(
                f"the query's column `{name}` is not in the table, which has {listed(schema.names)}",
                remedy="Leave it out of the query, add it to the table, or write `with schema evolution`, which for a "
                "DataFrame is `merge_schema=True`",
                table=table,
            )
        if name.lower() in positions:
            raise errors.ColumnNotFoundError(
                f"the query has the column `{name}` more than once", remedy="Name it once", table=table
            )
        positions[name.lower()] = position
    return _pairs(source, schema, positions)


def _pairs(source: StructType, schema: StructType, positions: Mapping[str, int]) -> list[_Pair]:
    """Pairs the table's columns, in order, with the query's columns at `positions`, by name in lower case."""
    found = [(target, positions.get(target.name.lower())) for target in schema]
    return [
        _Pair(target, position, None if position is None else source.fields[position]) for target, position in found
    ]


def _already_fits(pairs: Sequence[_Pair], source: StructType, schema: StructType) -> bool:
    """Returns whether the query's columns match the table's in name, order and type."""
    if any(map(has_lengths, schema)):
        return False
    return source.names == schema.names and all(
        pair.position == place and pair.source is not None and nullable(pair.source.type) == nullable(pair.target.type)
        for place, pair in enumerate(pairs)
    )


def _converted(renamed: DataFrame, pairs: Sequence[_Pair], table: str, by_name: bool) -> Assigned:
    columns: list[Column] = []
    lost: dict[str, Column] = {}
    checks: list[Check] = []
    for pair in pairs:
        column, conv = _column(pair, table, by_name)
        columns.append(column.alias(pair.target.name, metadata=dict(pair.target.metadata)))
        if conv is not None and conv.loses is not None and pair.source is not None:
            name = f"{_LOST}{len(lost)}"
            given = F.col(f"{_SOURCE}{pair.position}")
            lost[name] = F.when(conv.loses(given), given.cast("string")).alias(name)
            checks.append(_lost_check(name, pair.source, pair.target, table))
    return Assigned(renamed.select(*columns, *lost.values()), tuple(checks))


def _column(pair: _Pair, table: str, by_name: bool) -> tuple[Column, Conversion | None]:
    if pair.source is None:
        given = F.expr(rules.typed_default(pair.target, table))
        return fitted(given, declared_type(pair.target)), None
    wanted = declared_type(pair.target)
    found = conversion(pair.source.type, wanted, by_name)
    if found is None:
        raise errors.TypeMismatchError(
            f"the column `{pair.source.name}` has the type {pair.source.type.sql_name}, which cannot be stored in "
            f"`{pair.target.name}` of type {wanted.sql_name}",
            table=table,
            details={"column": pair.target.name},
        )
    return found.convert(F.col(f"{_SOURCE}{pair.position}")), found


def _lost_check(name: str, source: StructField, target: StructField, table: str) -> Check:
    def error(count: int, example: str | None) -> errors.SiltError:
        rows = counted(count, "have", "has")
        return errors.ValueNotCastableError(
            f"{rows} a value of type {source.type.sql_name} in `{source.name}` that the column `{target.name}` of type "
            f"{target.type.sql_name} cannot hold{shown(example)}",
            table=table,
            details={"column": target.name, "rows": count},
        )

    return Check(F.col(name).isNotNull(), F.col(name), error)


def _evolved_struct(schema: StructType, source: StructType) -> StructType:
    fields = [_evolved_field(member, source.field(member.name)) for member in schema]
    new = [
        StructField(member.name, nullable(member.type), True, member.metadata)
        for member in source
        if member.name not in schema
    ]
    return StructType((*fields, *new))


def _evolved_field(member: StructField, source: StructField | None) -> StructField:
    if source is None:
        return member
    return StructField(member.name, _evolved(member.type, source.type), member.nullable, member.metadata)


def _evolved(data_type: DataType, source: DataType) -> DataType:
    if isinstance(data_type, StructType) and isinstance(source, StructType):
        return _evolved_struct(data_type, source)
    if isinstance(data_type, ArrayType) and isinstance(source, ArrayType):
        return ArrayType(_evolved(data_type.element_type, source.element_type), data_type.contains_null)
    if isinstance(data_type, MapType) and isinstance(source, MapType):
        return MapType(
            _evolved(data_type.key_type, source.key_type),
            _evolved(data_type.value_type, source.value_type),
            data_type.value_contains_null,
        )
    return data_type
