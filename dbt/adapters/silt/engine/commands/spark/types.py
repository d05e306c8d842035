"""Converts schemas between the kernel's values and Spark's.

The log knows no `char` and `varchar`: as Spark does, they are kept as `string` with the type as written in the column's
metadata, under `CHAR_VARCHAR_KEY`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import types as spark_types

from dbt.adapters.silt.engine.kernel.errors import (
    InvalidNameError,
    StatementSyntaxError,
    TypeMismatchError,
    UnsupportedStatementError,
)
from dbt.adapters.silt.engine.kernel.table.features import PRIMITIVE_TYPES
from dbt.adapters.silt.engine.kernel.table.schema import (
    CHAR_VARCHAR_KEY,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    map_fields,
    nullable_schema,
    primitive_types,
)

NO_COLUMNS: Final = StructType()

_LENGTH = re.compile(r"(char|varchar)\(([0-9]+)\)")


def spark_schema(schema: StructType) -> spark_types.StructType:
    """The schema as Spark's own value, with nullability and metadata."""
    return spark_types.StructType.fromJson(json.loads(schema.to_json()))


def spark_type(data_type: DataType) -> spark_types.DataType:
    """One type as Spark's own value."""
    return spark_schema(StructType((StructField("value", data_type),))).fields[0].dataType


def kernel_schema(schema: spark_types.StructType) -> StructType:
    """Spark's schema as the log spells it."""
    plain = spark_types.StructType([_without_lengths(member) for member in schema.fields])
    return StructType.from_json(plain.json())


def query_schema(df: DataFrame) -> StructType:
    """A query's columns as those of a new table: nullable, with their comments and lengths, and nothing else."""
    return map_fields(nullable_schema(kernel_schema(df.schema)), _inherited)


def column_type(text: str, table: str | None = None) -> StructField:
    """A column type as SQL spells it, as an unnamed field: a `char` or `varchar` has its length in the metadata.

    Raises:
        StatementSyntaxError: the text is no type.
    """
    try:
        parsed = spark_types.DataType.fromDDL(text)
    except PySparkException as error:
        raise StatementSyntaxError(f"`{text}` is not a column type", table=table) from error
    return kernel_schema(spark_types.StructType([spark_types.StructField("", parsed)])).fields[0]


def check_storable(schema: StructType, table: str | None = None, old: StructType = NO_COLUMNS) -> None:
    """Passes where a table can have this schema.

    Args:
        old: what the table has; its columns may be of types that another writer gave them.

    Raises:
        InvalidNameError: two columns, or two members of a struct, have names that differ in case only.
        TypeMismatchError: a column has a type that the format does not hold, or none at all.
    """
    for struct in _structs(schema):
        _check_names(struct, table)
    for member in schema:
        before = old.field(member.name)
        if before is not None and before.type == member.type:
            continue
        for primitive in primitive_types(member.type):
            _check_primitive(member, primitive, table)


def check_voids(schema: StructType, table: str) -> None:
    """Passes where files can be written that leave out all columns of type void, as the specification asks.

    Raises:
        UnsupportedStatementError: one is inside of another column, or there are no others.
    """
    for member in schema:
        if not is_void(member.type) and any(map(is_void, primitive_types(member.type))):
            raise UnsupportedStatementError(
                f"the column `{member.name}` of type {member.type.sql_name} holds a part without a type: no rows can be"
                " written",
                remedy="Give the part a type first, with alter table ... alter column ... type",
                table=table,
            )
    if all(is_void(member.type) for member in schema):
        raise UnsupportedStatementError(
            "no column of the table has a type: no rows can be written",
            remedy="Give one a type first, with alter table ... alter column ... type",
            table=table,
        )


def text_length(member: StructField) -> tuple[str, int] | None:
    """`char` or `varchar`, and how many characters it has room for; None for a column without such a limit."""
    match = _LENGTH.fullmatch(str(member.metadata.get(CHAR_VARCHAR_KEY, "")))
    return None if match is None else (match[1], int(match[2]))


def is_void(data_type: DataType) -> bool:
    """Whether the type has no value but null; data files leave such columns out."""
    return data_type == PrimitiveType("void")


def _inherited(field: StructField) -> StructField:
    kept = {key: value for key, value in field.metadata.items() if key in ("comment", CHAR_VARCHAR_KEY)}
    return replace(field, metadata=kept)


def _without_lengths(member: spark_types.StructField) -> spark_types.StructField:
    plain = _plain(member.dataType)
    if plain == member.dataType:
        return member
    metadata = {**(member.metadata or {}), CHAR_VARCHAR_KEY: member.dataType.simpleString()}
    return spark_types.StructField(member.name, plain, member.nullable, metadata)


def _plain(data_type: spark_types.DataType) -> spark_types.DataType:
    if isinstance(data_type, spark_types.CharType | spark_types.VarcharType):
        return spark_types.StringType()
    if isinstance(data_type, spark_types.ArrayType):
        return spark_types.ArrayType(_plain(data_type.elementType), data_type.containsNull)
    if isinstance(data_type, spark_types.MapType):
        return spark_types.MapType(_plain(data_type.keyType), _plain(data_type.valueType), data_type.valueContainsNull)
    if isinstance(data_type, spark_types.StructType):
        return spark_types.StructType(
            [
                spark_types.StructField(member.name, _plain(member.dataType), member.nullable, member.metadata)
                for member in data_type.fields
            ]
        )
    return data_type


def _check_names(schema: StructType, table: str | None) -> None:
    seen = Counter(name.lower() for name in schema.names)
    twice = [name for name in schema.names if seen[name.lower()] > 1]
    if twice:
        problem = f"the columns {_listed(twice)} have the same name but for upper and lower case"
        raise InvalidNameError(problem, table=table)


def _structs(data_type: DataType) -> Iterator[StructType]:
    """Every struct in the type, itself included."""
    if isinstance(data_type, StructType):
        yield data_type
        for member in data_type:
            yield from _structs(member.type)
    elif isinstance(data_type, ArrayType):
        yield from _structs(data_type.element_type)
    elif isinstance(data_type, MapType):
        yield from _structs(data_type.key_type)
        yield from _structs(data_type.value_type)


def _check_primitive(member: StructField, primitive: PrimitiveType | DecimalType, table: str | None) -> None:
    if primitive.name == "void":
        raise TypeMismatchError(
            f"the column `{member.name}` has no type: it is a bare NULL in the query",
            remedy="Give it a type in the query, such as cast(null as string)",
            table=table,
        )
    if isinstance(primitive, PrimitiveType) and primitive.name not in PRIMITIVE_TYPES:
        raise TypeMismatchError(
            f"the column `{member.name}` has the type {primitive.name}, which a table cannot hold",
            remedy="Cast it in the query to a type that tables hold",
            table=table,
        )


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
