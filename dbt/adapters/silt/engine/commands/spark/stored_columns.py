"""Converts columns between a table and its data files, which use physical names under column mapping.

Conditions on a floating-point column must not reach the readers of Parquet and ORC files (`without_pushdown`). They
skip row groups and pages by dictionaries, Bloom filters and bounds, in which -0.0 differs from 0.0 and NaN may be
missing: Spark would never see rows that satisfy the condition. A column minus 0.0 has the same values, -0.0 and NaN
included, but Spark pushes no condition on it down, whether the condition is in the query or derived from a join or a
subquery. Conditions on other columns, and on other members of its struct, are pushed down as before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import Final, TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as spark_types

from dbt.adapters.silt.engine.commands.spark import frames
from dbt.adapters.silt.engine.commands.spark.types import spark_type
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.table.schema import StructField, all_fields, nullable

Path: TypeAlias = tuple[str, ...]

_ZEROS: Final[dict[type[spark_types.DataType], str]] = {spark_types.FloatType: "0.0F", spark_types.DoubleType: "0.0D"}


def to_table_column(member: StructField, stored: StructField) -> str | Column:
    """Returns a file's column as the table's column; it is cast if its type, or a name inside of its type, differs."""
    if stored.type == member.type and not stored.metadata and not member.metadata:
        return quote(stored.name)
    column = F.col(quote(stored.name))
    if stored.type.sql_name != member.type.sql_name:
        column = column.cast(spark_type(nullable(member.type)))
    return column.alias(member.name, metadata=dict(member.metadata))


def to_file_column(member: StructField, stored: StructField) -> str | Column:
    """Returns a table's column with the files' names and Parquet field ids, including those of members of structs."""
    if stored == member:
        return quote(member.name)
    column = F.expr(quote(member.name))
    if any(True for _ in all_fields(stored.type)):
        column = column.cast(spark_type(nullable(stored.type)))
    return column.alias(stored.name, metadata=dict(stored.metadata))


def float_paths(schema: spark_types.StructType, above: Path = ()) -> Iterator[Path]:
    """Yields the paths of all floating-point columns, including members of structs, but not inside arrays and maps."""
    for field in schema.fields:
        path = (*above, field.name)
        if isinstance(field.dataType, spark_types.StructType):
            yield from float_paths(field.dataType, path)
        elif isinstance(field.dataType, spark_types.FloatType | spark_types.DoubleType):
            yield path


def without_pushdown(frame: DataFrame, schema: spark_types.StructType, paths: Collection[Path]) -> DataFrame:
    """Returns the same rows, but conditions on these columns no longer reach the reader of the files.

    Args:
        schema: the schema of the frame, or of the columns that the paths begin with.
        paths: the paths of floating-point columns, as `float_paths` yields them.
    """
    inside = _by_first(paths)
    columns = {field.name: _of_field(field, inside[field.name]) for field in schema.fields if field.name in inside}
    return frames.with_columns(frame, columns) if columns else frame


def _of_field(field: spark_types.StructField, paths: Collection[Path]) -> str | Column:
    zero = _ZEROS.get(type(field.dataType))
    if zero is not None and not field.metadata:
        return f"{quote(field.name)} - {zero}"
    column = _shielded_column(F.col(quote(field.name)), field.dataType, paths)
    if any(_loses_metadata(field.dataType, path) for path in paths):
        column = column.cast(field.dataType)
    return column.alias(field.name, metadata=field.metadata)


def _shielded_column(column: Column, data_type: spark_types.DataType, paths: Collection[Path]) -> Column:
    if not isinstance(data_type, spark_types.StructType):
        return column - F.expr(_ZEROS[type(data_type)])
    inside, struct = _by_first(paths), column
    for field in data_type.fields:
        if field.name in inside:
            # Spark would read all members of a rebuilt struct, even if a query names only some members.
            member = _shielded_column(column.getField(field.name), field.dataType, inside[field.name])
            struct = struct.withField(quote(field.name), member)
    return struct


def _by_first(paths: Collection[Path]) -> dict[str, list[Path]]:
    inside: dict[str, list[Path]] = defaultdict(list)
    for first, *rest in paths:
        inside[first].append(tuple(rest))
    return inside


def _loses_metadata(data_type: spark_types.DataType, path: Path) -> bool:
    """Returns whether a member on the path has metadata, such as a comment, which its replacement would lack."""
    if not path or not isinstance(data_type, spark_types.StructType):
        return False
    member = data_type[path[0]]
    return bool(member.metadata) or _loses_metadata(member.dataType, path[1:])
