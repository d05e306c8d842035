"""Brings the schema of a table and that of a DataFrame together."""

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
    """The columns as a DataFrame has them: nullable, with their comments and the lengths of their texts."""
    return spark_schema(_plain(schema))


def chosen(schema: StructType, wanted: spark_types.StructType, table: str) -> tuple[str, ...]:
    """The names of the columns that a read asks for, in its order, spelled as in the table.

    Raises:
        ColumnNotFoundError: there is no such column.
        TypeMismatchError: the table's column is of another type, or the read has it NOT NULL, or spelled otherwise.
    """
    return tuple(_chosen(schema.require(each.name, table), each, table) for each in kernel_schema(wanted))


def selected(schema: StructType, names: Sequence[str] | None, table: str) -> StructType:
    """Some columns, in the order of their names; all of them where none are named."""
    if names is None:
        return schema
    return StructType(tuple(schema.require(name, table) for name in names))


def _chosen(column: StructField, wanted: StructField, table: str) -> str:
    (plain,) = _plain(StructType((column,)))
    if (plain.name, plain.type, plain.nullable) == (wanted.name, wanted.type, wanted.nullable):
        return column.name
    raise TypeMismatchError(
        f"the schema that is given has `{wanted.name}` {wanted.sql_type}{'' if wanted.nullable else ' NOT NULL'}, and "
        f"the table `{column.name}` {column.type.sql_name}",
        remedy="Leave `schema` out, or give the columns as the table has them, nullable",
        table=table,
    )


def _plain(schema: StructType) -> StructType:
    return map_fields(nullable_schema(schema), _with_comment)


def _with_comment(field: StructField) -> StructField:
    kept = {key: value for key, value in field.metadata.items() if key in ("comment", CHAR_VARCHAR_KEY)}
    return StructField(field.name, field.type, field.nullable, kept)
