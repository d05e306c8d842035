"""Splits a value of a fixture into cells: the single values in arrays, maps and structs, each with its type."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import types as T

NO_FIELD = T.NullType()
"""The type of a value without a field in its struct."""

_NESTED = (T.ArrayType, T.MapType, T.StructType)


@dataclass(frozen=True)
class Cell:
    """A single value of a fixture.

    Attributes:
        path: its location for messages: a column, or a part of a column such as `tags[0]`.
        value: as read from YAML, CSV, JSON or Spark; never null.
        kind: the type that must hold it.
    """

    path: str
    value: Any
    kind: T.DataType


def is_nested(kind: T.DataType) -> bool:
    """Returns whether values of the type have parts."""
    return isinstance(kind, _NESTED)


def has_form(value: Any, kind: T.DataType) -> bool:
    """Returns whether a value has the form of the type: a list, a mapping, or a single value."""
    if isinstance(kind, T.ArrayType):
        return isinstance(value, Sequence) and not isinstance(value, str | bytes)
    if isinstance(kind, T.MapType | T.StructType):
        return isinstance(value, Mapping)
    return isinstance(kind, T.VariantType) or not isinstance(value, Mapping | list | tuple)


def cells(path: str, value: Any, kind: T.DataType) -> Iterator[Cell]:
    """Yields the single values within a value; a part without the form of its type is a single cell."""
    if value is None:
        return
    if not is_nested(kind) or not has_form(value, kind):
        yield Cell(path, value, kind)
    elif isinstance(kind, T.ArrayType):
        for at, each in enumerate(value):
            yield from cells(f"{path}[{at}]", each, kind.elementType)
    elif isinstance(kind, T.MapType):
        for key, each in value.items():
            yield from cells(f"{path}.key", key, kind.keyType)
            yield from cells(f"{path}[{_text(key)}]", each, kind.valueType)
    elif isinstance(kind, T.StructType):
        for name, each in value.items():
            yield from cells(f"{path}.{name}", each, _member(kind, str(name)))


def members(value: Mapping[Any, Any], kind: T.StructType) -> list[Any]:
    """Returns the values of a struct's fields, in the type's order; null for fields that the mapping omits."""
    given = {str(name).lower(): each for name, each in value.items()}
    return [given.get(member.name.lower()) for member in kind.fields]


def _member(kind: T.StructType, name: str) -> T.DataType:
    """Returns the type of a field, or `NO_FIELD` if the struct lacks it."""
    return next((each.dataType for each in kind.fields if each.name.lower() == name.lower()), NO_FIELD)


def _text(key: Any) -> str:
    return json.dumps(key, default=str)
