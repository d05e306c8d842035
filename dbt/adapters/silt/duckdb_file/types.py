"""Converts stored columns to DuckDB: the type of a column, and the SQL of its value under the names of the table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dbt.adapters.silt.engine.kernel.errors import UnsupportedFeatureError
from dbt.adapters.silt.engine.kernel.rows.file_read import partition_value
from dbt.adapters.silt.engine.kernel.table import collations
from dbt.adapters.silt.engine.kernel.table.schema import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)
from dbt.adapters.silt.engine.kernel.table.text_lengths import length_limit, padded_type

_PRIMITIVES: Final[Mapping[str, str]] = {
    "boolean": "BOOLEAN",
    "byte": "TINYINT",
    "short": "SMALLINT",
    "integer": "INTEGER",
    "long": "BIGINT",
    "float": "REAL",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "binary": "BLOB",
    "date": "DATE",
    "timestamp": "TIMESTAMPTZ",
    "timestamp_ntz": "TIMESTAMP",
}


def quoted(name: str) -> str:
    """Returns a name as an identifier of DuckDB."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Returns a string as a literal of DuckDB."""
    return "'" + text.replace("'", "''") + "'"


def type_of(data_type: DataType) -> str:
    """Returns the DuckDB type whose values are those of the type.

    Raises:
        UnsupportedFeatureError: if DuckDB has no such type.
    """
    match data_type:
        case StructType():
            return f"STRUCT({', '.join(f'{quoted(each.name)} {type_of(each.type)}' for each in data_type)})"
        case ArrayType():
            return f"{type_of(data_type.element_type)}[]"
        case MapType():
            return f"MAP({type_of(data_type.key_type)}, {type_of(data_type.value_type)})"
        case DecimalType():
            return f"DECIMAL({data_type.precision}, {data_type.scale})"
    if length_limit(data_type) is not None:
        return "VARCHAR"
    found = _PRIMITIVES.get(collations.without(data_type.name))
    if found is None:
        raise UnsupportedFeatureError(
            f"DuckDB has no type for the values of the type {data_type.sql_name}",
            remedy="Read the table with Spark, or publish the other columns as an `external` model",
        )
    return found


def value_of(field: StructField, stored: StructField) -> str:
    """Returns the SQL of a column's value: with the names and the type of the table, `char` values padded.

    Args:
        stored: the column with its physical names.
    """
    return _value(quoted(stored.name), padded_type(field), stored.type, 0)


def partition_literal(text: str | None, field: StructField) -> str:
    """Returns a partition value of the log as a literal of DuckDB.

    Raises:
        CorruptLogError: if the text is not a value of the column's type.
    """
    value = partition_value(text, field)
    if not value.is_valid:
        shown = "NULL"
    elif type_of(field.type) == "BLOB":
        shown = f"from_hex({literal(value.as_py().hex())})"
    else:
        shown = literal(value.cast("string").as_py())
    return f"CAST({shown} AS {type_of(field.type)})"


def _value(source: str, wanted: DataType, stored: DataType, depth: int) -> str:
    """Returns the SQL of a value that has the names of `stored`, with the names and the types of `wanted`."""
    limit = length_limit(wanted)
    if limit is not None:
        return f"CASE WHEN length({source}) < {limit[1]} THEN rpad({source}, {limit[1]}, ' ') ELSE {source} END"
    each = f"e{depth}"
    match wanted, stored:
        case StructType(), StructType():
            members = (
                f"{quoted(new.name)} := {_value(f'{source}.{quoted(old.name)}', new.type, old.type, depth + 1)}"
                for new, old in zip(wanted, stored, strict=True)
            )
            return f"CASE WHEN {source} IS NOT NULL THEN struct_pack({', '.join(members)}) END"
        case ArrayType(), ArrayType():
            inner = _value(each, wanted.element_type, stored.element_type, depth + 1)
            return source if inner == each else f"list_transform({source}, lambda {each}: {inner})"
        case MapType(), MapType():
            key = _value(f"{each}.key", wanted.key_type, stored.key_type, depth + 1)
            value = _value(f"{each}.value", wanted.value_type, stored.value_type, depth + 1)
            if (key, value) == (f"{each}.key", f"{each}.value"):
                return source
            entries = f"lambda {each}: struct_pack(key := {key}, value := {value})"
            return f"map_from_entries(list_transform(map_entries({source}), {entries}))"
    return source
