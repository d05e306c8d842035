"""Renders the values of fixtures as SQL expressions of their columns' types."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import types as T

from dbt.adapters.silt.engine.kernel.identifiers import string_literal
from dbt.adapters.silt.engine.sql.query.quotes import SPARKS_DEFAULT, Quotes
from dbt.adapters.silt.engine.sql.tokens import Kind, tokenize
from dbt.adapters.silt.materializations.row_comparison import sql_name

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


def _members(value: Mapping[Any, Any], kind: T.StructType) -> list[Any]:
    """Returns the values of a struct's fields, in the type's order; null for fields that the mapping omits."""
    given = {str(name).lower(): each for name, each in value.items()}
    return [given.get(member.name.lower()) for member in kind.fields]


def _member(kind: T.StructType, name: str) -> T.DataType:
    """Returns the type of a field, or `NO_FIELD` if the struct lacks it."""
    return next((each.dataType for each in kind.fields if each.name.lower() == name.lower()), NO_FIELD)


def _text(key: Any) -> str:
    return json.dumps(key, default=str)


_WHOLE_NUMBERS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_VARIANT = "variant"


@dataclass(frozen=True)
class Literals:
    """Renders values that fit their types.

    Args:
        quotes: how the session reads quoted strings.
    """

    quotes: Quotes

    def of(self, value: Any, kind: T.DataType) -> str:
        """Returns an expression for the value, of exactly the type."""
        if value is None:
            return f"cast(null as {sql_name(kind)})"
        if isinstance(kind, T.VariantType):
            return f"parse_json({self.quotes.constant(json.dumps(value, default=str))})"
        return f"cast({self._text(value, kind)} as {sql_name(kind)})"

    def _text(self, value: Any, kind: T.DataType) -> str:
        if isinstance(kind, T.ArrayType):
            return self._call("array", (self.of(each, kind.elementType) for each in value))
        if isinstance(kind, T.MapType):
            pairs = ((self.of(key, kind.keyType), self.of(each, kind.valueType)) for key, each in value.items())
            return self._call("map", (text for pair in pairs for text in pair))
        if isinstance(kind, T.StructType):
            named = zip(kind.fields, _members(value, kind), strict=True)
            parts = ((string_literal(member.name), self.of(each, member.dataType)) for member, each in named)
            return self._call("named_struct", (text for pair in parts for text in pair))
        return self._single(value, kind)

    @staticmethod
    def _call(function: str, arguments: Iterable[str]) -> str:
        return f"{function}({', '.join(arguments)})"

    def _single(self, value: Any, kind: T.DataType) -> str:
        if isinstance(value, bytes | bytearray):
            return f"X'{value.hex()}'"
        if isinstance(value, str):
            return self.quotes.constant(value)
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(kind, _WHOLE_NUMBERS):
            return str(int(value))
        if isinstance(kind, T.BooleanType | T.TimestampType | T.DayTimeIntervalType | T.YearMonthIntervalType):
            return str(value) if isinstance(value, int | float) else self.quotes.constant(str(value))
        return self.quotes.constant(str(value))  # a number, too: a literal of SQL has at most 38 digits


def nested_literal(value: Any, kind: str, quotes: Quotes = SPARKS_DEFAULT) -> str:
    """Returns an expression of an array, map, struct or variant type.

    Args:
        value: a YAML list or mapping, an SQL expression, or a string literal that contains JSON or an SQL expression.
        kind: the type, as SQL spells it.
        quotes: how the session reads quoted strings.
    """
    text = _literal_text(value, quotes) if isinstance(value, str) else json.dumps(value, default=str)
    if text is None or not _is_json(text, kind):
        return f"try_cast({value if text is None else text} as {kind})"
    if kind.lower() == _VARIANT:
        return f"parse_json({quotes.constant(text)})"
    return f"from_json({quotes.constant(text)}, {quotes.constant(kind)}, map('mode', 'FAILFAST'))"


def _literal_text(expression: str, quotes: Quotes) -> str | None:
    """Returns the value of the expression if it is a string literal."""
    first, *others = tokenize(expression)
    return quotes.value(first) if first.kind is Kind.STRING and len(others) == 1 else None


def _is_json(text: str, kind: str) -> bool:
    """Returns whether a string is JSON for the type; a single word or number is valid for a variant only."""
    try:
        value = json.loads(text)
    except ValueError:
        return False
    return isinstance(value, list | dict) or kind.lower() == _VARIANT
