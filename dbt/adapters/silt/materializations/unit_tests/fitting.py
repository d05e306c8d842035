"""Checks that a type holds a fixture's value as written, without rounding a digit or omitting a part."""

from __future__ import annotations

import datetime
import math
import re
import struct
from decimal import Context, Decimal, InvalidOperation
from typing import Any

from pyspark.sql import types as T

from dbt.adapters.silt.materializations.unit_tests.literals import Cell, has_form

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


def fits(cell: Cell) -> bool:
    """Returns whether the type holds the value; a string for a date, time or interval needs Spark's check as well."""
    value, kind = cell.value, cell.kind
    if not has_form(value, kind) or isinstance(kind, T.NullType):
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
