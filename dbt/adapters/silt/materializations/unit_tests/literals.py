"""Renders the values of fixtures as SQL expressions of their columns' types, and checks that types hold them."""

from __future__ import annotations

import datetime
import json
import math
import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, InvalidOperation
from typing import Any

from pyspark.sql import types as T

from dbt.adapters.silt.engine.kernel.identifiers import string_literal
from dbt.adapters.silt.engine.sql.query.quotes import SPARKS_DEFAULT, Quotes
from dbt.adapters.silt.engine.sql.tokens import Kind, tokenize
from dbt.adapters.silt.materializations.row_comparison import sql_name

NO_FIELD = T.NullType()
"""The type of a value without a field in its struct."""

_NESTED = (T.ArrayType, T.MapType, T.StructType)

_WHOLE = re.compile(r"[+-]?\d+")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_NOT_FINITE = re.compile(r"[+-]?(inf|infinity)|nan", re.IGNORECASE)
_BOOLEANS = frozenset({"t", "true", "y", "yes", "1", "f", "false", "n", "no", "0"})
_TIME = re.compile(r"[T ]\d{1,2}(:\d{1,2}){0,2}(\.(?P<fraction>\d*))?\s*(?P<zone>\S.*)?$")
_BITS: dict[type[T.DataType], int] = {T.ByteType: 8, T.ShortType: 16, T.IntegerType: 32, T.LongType: 64}
_EXACT_DIGITS: dict[type[T.DataType], int] = {T.FloatType: 6, T.DoubleType: 15}
"""The number of digits that the type keeps of any number."""

_TIMES = (T.DateType, T.TimestampType, T.TimestampNTZType)
_INTERVALS = (T.DayTimeIntervalType, T.YearMonthIntervalType, T.CalendarIntervalType)
_WIDE = Context(prec=400)


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


def _has_form(value: Any, kind: T.DataType) -> bool:
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
    if not is_nested(kind) or not _has_form(value, kind):
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


def fits(cell: Cell) -> bool:
    """Returns whether the type holds the value; a string for a date, time or interval needs Spark's check as well."""
    value, kind = cell.value, cell.kind
    if not _has_form(value, kind) or isinstance(kind, T.NullType):
        return False
    if isinstance(kind, T.CharType | T.VarcharType):
        return len(str(value).rstrip(" ")) <= kind.length
    if isinstance(kind, T.BinaryType):
        return isinstance(value, str | bytes | bytearray)
    if isinstance(kind, T.BooleanType):
        return isinstance(value, bool) or str(value).strip().lower() in _BOOLEANS
    if isinstance(kind, T.NumericType):
        return _fits_number(value, kind)
    if isinstance(kind, _TIMES):
        return _fits_time(value, kind)
    return _fits_interval(value, kind) if isinstance(kind, _INTERVALS) else True


def is_for_spark(cell: Cell) -> bool:
    """Returns whether only Spark can check that the string is a value of the type."""
    return isinstance(cell.value, str) and isinstance(cell.kind, _TIMES + _INTERVALS)


def _fits_number(value: Any, kind: T.DataType) -> bool:
    if isinstance(value, bool):
        return True
    text = str(value).strip()
    if type(kind) in _EXACT_DIGITS:
        return _fits_float(text, kind)
    if _NUMBER.fullmatch(text) is None:
        return False
    number = _decimal(text)
    if number is None:
        return False
    if isinstance(kind, T.DecimalType):
        return _fits_decimal(number, kind)
    if isinstance(value, str) and _WHOLE.fullmatch(text) is None:  # Spark does not accept a decimal point in an integer
        return False
    most = 2 ** (_BITS[type(kind)] - 1)
    return number == number.to_integral_value() and -most <= number < most


def _fits_decimal(number: Decimal, kind: T.DecimalType) -> bool:
    return (
        abs(number) < Decimal(10) ** (kind.precision - kind.scale)
        and number == number.quantize(Decimal(1).scaleb(-kind.scale), context=_WIDE)
    )  # fmt: skip


def _fits_float(text: str, kind: T.DataType) -> bool:
    """Returns whether a binary fraction is near enough: a whole number that it rounds visibly does not fit."""
    if _NOT_FINITE.fullmatch(text):
        return True
    plain = text.rstrip("dDfF")
    number = _decimal(plain) if _NUMBER.fullmatch(plain) else None
    kept = None if number is None else _as_float(float(number), kind)
    if number is None or kept is None or math.isinf(kept) or (kept == 0) != (number == 0):
        return False
    digits = len(number.normalize(_WIDE).as_tuple().digits)
    return number != number.to_integral_value() or digits <= _EXACT_DIGITS[type(kind)] or Decimal(kept) == number


def _as_float(number: float, kind: T.DataType) -> float | None:
    if isinstance(kind, T.DoubleType):
        return number
    try:
        kept: float = struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        return None
    return kept


def _decimal(text: str) -> Decimal | None:
    """Returns the number, or None if its exponent is too large for every type."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if abs(number.adjusted()) < _WIDE.prec - 40 else None


def _fits_time(value: Any, kind: T.DataType) -> bool:
    if isinstance(value, datetime.datetime):
        if isinstance(kind, T.DateType):
            return value.time() == datetime.time() and value.tzinfo is None
        return value.tzinfo is None or isinstance(kind, T.TimestampType)
    if isinstance(value, datetime.date):
        return True
    if not isinstance(value, str):  # Spark reads a number as seconds since 1970 only for an instant
        return isinstance(kind, T.TimestampType) and not isinstance(value, bool)
    time = _TIME.search(value.strip())
    if time is None:
        return True
    is_local = isinstance(kind, T.TimestampNTZType) and time["zone"] is not None
    return not is_local and not (time["fraction"] or "")[6:].strip("0")


def _fits_interval(value: Any, kind: T.DataType) -> bool:
    if isinstance(value, datetime.timedelta):
        return True
    if isinstance(value, str) or isinstance(value, bool) or isinstance(kind, T.CalendarIntervalType):
        return isinstance(value, str) and not _has_lost_digits(value)
    is_one_unit = kind.startField == kind.endField  # type: ignore[attr-defined]
    has_fractions = isinstance(kind, T.DayTimeIntervalType) and kind.endField == T.DayTimeIntervalType.SECOND
    return is_one_unit and (has_fractions or value == int(value))


def _has_lost_digits(text: str) -> bool:
    fraction = re.search(r"\.\d{6}(\d+)", text)
    return fraction is not None and bool(fraction[1].strip("0"))
