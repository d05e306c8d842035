"""Renders values so that equal values look equal: dbt compares the rows of a unit test as they are shown."""

from __future__ import annotations

from pyspark.sql import types as T

from dbt.adapters.silt.engine.kernel.identifiers import quote, string_literal

_BY_KEY = "(a, b) -> case when a.key < b.key then -1 when a.key > b.key then 1 else 0 end"


def with_sorted_maps(text: str, kind: T.DataType, depth: int = 0) -> str:
    """Returns SQL for the same value with the entries of its maps sorted by key, at any depth."""
    if not _holds_map(kind):
        return text
    each = f"each_{depth}"
    if isinstance(kind, T.ArrayType):
        return f"transform({text}, {each} -> {with_sorted_maps(each, kind.elementType, depth + 1)})"
    if isinstance(kind, T.StructType):
        return _struct(text, kind, depth)
    if not isinstance(kind, T.MapType):
        return text
    ordered = f"map_from_entries(array_sort(map_entries({text}), {_BY_KEY}))"
    value = with_sorted_maps(each, kind.valueType, depth + 1)
    return ordered if value == each else f"transform_values({ordered}, (key_{depth}, {each}) -> {value})"


def _struct(text: str, kind: T.StructType, depth: int) -> str:
    members = (
        f"{string_literal(member.name)}, {with_sorted_maps(f'{text}.{quote(member.name)}', member.dataType, depth)}"
        for member in kind.fields
    )
    return f"if({text} is null, null, named_struct({', '.join(members)}))"


def _holds_map(kind: T.DataType) -> bool:
    if isinstance(kind, T.ArrayType):
        return _holds_map(kind.elementType)
    if isinstance(kind, T.StructType):
        return any(_holds_map(member.dataType) for member in kind.fields)
    return isinstance(kind, T.MapType)
