"""Renders values of any type comparably: the SQL condition that two rows differ, and values with sorted maps.

Spark compares neither maps nor variants. At any depth of a column's type, a map is compared as the sorted array of its
entries, so that their order does not matter, and a variant as its JSON.
"""

from __future__ import annotations

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType, VariantType

from dbt.adapters.silt.engine.commands.spark.types import kernel_schema
from dbt.adapters.silt.engine.kernel.identifiers import quote, string_literal

_BY_KEY = "(a, b) -> case when a.key < b.key then -1 when a.key > b.key then 1 else 0 end"


def rows_differ(new: str, query: StructType, old: str, table: StructType) -> str:
    """Returns the condition that a row of a query differs from a row of a table in any column of the query.

    Never null: null is a value like any other. A column that the table lacks makes every row differ. A value whose type
    differs from the table's is compared as the table would store it.

    Args:
        new, old: the aliases of the query and of the table.
        query: the columns to compare, found in the table by name in any case.
    """
    stored = {member.name.lower(): member for member in table}
    if any(member.name.lower() not in stored for member in query):
        return "true"
    return " or ".join(_differ(new, member, old, stored[member.name.lower()]) for member in query)


def _differ(new: str, given: StructField, old: str, stored: StructField) -> str:
    value, before = f"{new}.{quote(given.name)}", f"{old}.{quote(stored.name)}"
    kind = stored.dataType
    if sql_name(given.dataType) == sql_name(kind):
        return f"not ({_comparable(before, kind)} <=> {_comparable(value, kind)})"
    as_stored = f"try_cast({value} as {sql_name(kind)})"
    differ = f"not ({_comparable(before, kind)} <=> {_comparable(as_stored, kind)})"
    return f"{differ} or ({before} is null) <> ({value} is null)"


def sql_name(kind: DataType) -> str:
    """Returns the type in the syntax of a cast, without nullability."""
    (member,) = kernel_schema(StructType([StructField("value", kind)]))
    return member.type.sql_name


def _comparable(text: str, kind: DataType, depth: int = 0) -> str:
    """Returns SQL that converts the value to a form that `<=>` compares correctly for its type."""
    if not _holds_incomparable(kind):
        return text
    each = f"each_{depth}"
    if isinstance(kind, VariantType):
        return f"to_json({text})"
    if isinstance(kind, ArrayType):
        return f"transform({text}, {each} -> {_comparable(each, kind.elementType, depth + 1)})"
    if isinstance(kind, MapType):
        value = _comparable(f"{each}.value", kind.valueType, depth + 1)
        return f"array_sort(transform(map_entries({text}), {each} -> struct({each}.key, {value})))"
    if isinstance(kind, StructType):
        members = (_comparable(f"{text}.{quote(member.name)}", member.dataType, depth) for member in kind)
        return f"if({text} is null, null, struct({', '.join(members)}))"
    return text


def _holds_incomparable(kind: DataType) -> bool:
    if isinstance(kind, ArrayType):
        return _holds_incomparable(kind.elementType)
    if isinstance(kind, StructType):
        return any(_holds_incomparable(member.dataType) for member in kind)
    return isinstance(kind, MapType | VariantType)


def with_sorted_maps(text: str, kind: DataType, depth: int = 0) -> str:
    """Returns SQL for the same value with the entries of its maps sorted by key, at any depth.

    dbt compares the rows of a unit test as they are shown, so equal values must look equal.
    """
    if not _holds_map(kind):
        return text
    each = f"each_{depth}"
    if isinstance(kind, ArrayType):
        return f"transform({text}, {each} -> {with_sorted_maps(each, kind.elementType, depth + 1)})"
    if isinstance(kind, StructType):
        return _struct_with_sorted_maps(text, kind, depth)
    if not isinstance(kind, MapType):
        return text
    ordered = f"map_from_entries(array_sort(map_entries({text}), {_BY_KEY}))"
    value = with_sorted_maps(each, kind.valueType, depth + 1)
    return ordered if value == each else f"transform_values({ordered}, (key_{depth}, {each}) -> {value})"


def _struct_with_sorted_maps(text: str, kind: StructType, depth: int) -> str:
    members = (
        f"{string_literal(member.name)}, {with_sorted_maps(f'{text}.{quote(member.name)}', member.dataType, depth)}"
        for member in kind.fields
    )
    return f"if({text} is null, null, named_struct({', '.join(members)}))"


def _holds_map(kind: DataType) -> bool:
    if isinstance(kind, ArrayType):
        return _holds_map(kind.elementType)
    if isinstance(kind, StructType):
        return any(_holds_map(member.dataType) for member in kind.fields)
    return isinstance(kind, MapType)
