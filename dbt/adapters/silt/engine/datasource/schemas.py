"""Matches the schemas of tables and DataFrames."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import types as spark_types

from dbt.adapters.silt.engine.commands.spark.types import kernel_schema, spark_schema
from dbt.adapters.silt.engine.kernel.errors import TypeMismatchError
from dbt.adapters.silt.engine.kernel.table.schema import (
    CHAR_VARCHAR_KEY,
    StructField,
    StructType,
    map_fields,
    nullable_schema,
)


def shown(schema: StructType) -> spark_types.StructType:
    """Returns the columns for a DataFrame: nullable, with their comments and the lengths of their strings."""
    return spark_schema(_plain(schema))


def chosen(schema: StructType, wanted: spark_types.StructType, table: str) -> tuple[str, ...]:
    """Returns the names of the requested columns, in the requested order, as the table spells them.

    Raises:
        ColumnNotFoundError: if a column does not exist.
        TypeMismatchError: if a requested column has another type or spelling than the table's, or is NOT NULL.
    """
    return tuple(_chosen(schema.require(each.name, table), each, table) for each in kernel_schema(wanted))


def selected(schema: StructType, names: Sequence[str] | None, table: str) -> StructType:
    """Returns the named columns, in the given order, or all columns if no names are given."""
    if names is None:
        return schema
    return StructType(tuple(schema.require(name, table) for name in names))


def _chosen(column: StructField, wanted: StructField, table: str) -> str:
    (plain,) = _plain(StructType((column,)))
    if (plain.name, plain.type, plain.nullable) == (wanted.name, wanted.type, wanted.nullable):
        return column.name
    raise TypeMismatchError(
        f"the given schema has `{wanted.name}` {wanted.sql_type}{'' if wanted.nullable else ' NOT NULL'}, but "
        f"the table has `{column.name}` {column.type.sql_name}",
        remedy="Omit `schema`, or give the table's columns and declare them nullable",
        table=table,
    )


def _plain(schema: StructType) -> StructType:
    return map_fields(nullable_schema(schema), _with_comment)


def _with_comment(field: StructField) -> StructField:
    kept = {key: value for key, value in field.metadata.items() if key in ("comment", CHAR_VARCHAR_KEY)}
    return StructField(field.name, field.type, field.nullable, kept)
