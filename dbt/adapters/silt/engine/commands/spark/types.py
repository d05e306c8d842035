"""Converts schemas between the kernel's values and Spark's.

The log has no types `char` and `varchar`: as in Spark, they are stored as `string`, with the declared type in the
column's metadata, under `CHAR_VARCHAR_KEY`.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types

from dbt.adapters.silt.engine.commands.spark import errors
from dbt.adapters.silt.engine.kernel.errors import StatementSyntaxError, UnsupportedFeatureError
from dbt.adapters.silt.engine.kernel.table import collations
from dbt.adapters.silt.engine.kernel.table.schema import (
    CHAR_VARCHAR_KEY,
    DataType,
    StructField,
    StructType,
    data_type_from_json,
    map_fields,
    nullable_schema,
    primitive_types,
)
from dbt.adapters.silt.engine.sql.portable_types import type_remedy

# Spark silently drops the collation of such a type.
_COLLATED_LENGTH = re.compile(r"char\s*\(\s*[0-9]+\s*\)\s*collate\s+(?!utf8_binary\b)", re.IGNORECASE)
_NO_COLLATION = "COLLATION_INVALID_NAME"
_KNOWN_COLLATIONS: set[str] = set()
_INHERITED = ("comment", CHAR_VARCHAR_KEY)


def spark_schema(schema: StructType) -> spark_types.StructType:
    """Converts a schema of the kernel to Spark's, with nullability and metadata."""
    return spark_types.StructType.fromJson(json.loads(schema.to_json()))


def check_collations(spark: SparkSession, schema: StructType, table: str) -> None:
    """Checks that Spark has the collations of a table's columns.

    Raises:
        UnsupportedFeatureError: if a collation is unknown.
    """
    names = {name for each in primitive_types(schema) if (name := collations.collation(each.name)) is not None}
    for name in sorted(names - _KNOWN_COLLATIONS):
        try:
            spark.sql(f"select '' collate {name}").schema  # noqa: B018 -- Spark Connect analyses a query only if asked
        except errors.SPARKS as error:
            if errors.condition(error) != _NO_COLLATION:
                raise
            raise UnsupportedFeatureError(
                f"the table has the collation {name}, which this version of Spark does not have",
                remedy="Read it with a version of Spark that has the collation, or with `silt.read`, as plain text",
                table=table,
                details={"features": (collations.FEATURE,)},
            ) from error
        _KNOWN_COLLATIONS.add(name)


def spark_type(data_type: DataType) -> spark_types.DataType:
    """Converts a type of the kernel to Spark's."""
    return spark_schema(StructType((StructField("value", data_type),))).fields[0].dataType


def kernel_schema(schema: spark_types.StructType) -> StructType:
    """Converts a schema of Spark to the kernel's, in the types of the log."""
    plain = spark_types.StructType([_without_lengths(member) for member in schema.fields])
    return StructType.from_json(plain.json())


def query_schema(df: DataFrame) -> StructType:
    """Returns a query's columns as columns of a new table: nullable, with their comments, lengths and collations."""
    return map_fields(nullable_schema(kernel_schema(df.schema)), _inherited)


def column_type(text: str, table: str | None = None) -> StructField:
    """Parses a column type in SQL into an unnamed field; the length of a `char` or `varchar` is in its metadata.

    Raises:
        StatementSyntaxError: if the text is not a type.
        UnsupportedFeatureError: if the type has both a length and a collation.
    """
    try:
        parsed = spark_types.DataType.fromDDL(text)
    except PySparkException as error:
        raise StatementSyntaxError(f"`{text}` is not a column type", remedy=type_remedy(text), table=table) from error
    if _COLLATED_LENGTH.search(text):
        raise UnsupportedFeatureError(
            f"the type `{text}` has both a length and a collation",
            remedy="Use `string collate ...`, and check the length with a constraint",
            table=table,
            details={"features": (collations.FEATURE,)},
        )
    return kernel_schema(spark_types.StructType([spark_types.StructField("", parsed)])).fields[0]


def _inherited(field: StructField) -> StructField:
    kept = {key: value for key, value in field.metadata.items() if key in _INHERITED}
    return replace(field, metadata=kept)


def _without_lengths(member: spark_types.StructField) -> spark_types.StructField:
    plain = _plain(member.dataType)
    if plain == member.dataType:
        return member
    # Spark's own SQL of a struct omits the quotes of its members' names.
    written = data_type_from_json(member.dataType.jsonValue()).sql_name
    metadata = {**(member.metadata or {}), CHAR_VARCHAR_KEY: written}
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
