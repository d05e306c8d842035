"""Converts literals of SQL to values of a column's type, if a comparison with either has the same result.

Spark compares a column with a literal of another type by converting either side or both. This module has only
conversions that do not depend on the session's settings for ANSI mode, timestamps and legacy behaviour; other literals
have no value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import Enum
from typing import Final, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dbt.adapters.silt.engine.kernel.table.expressions import Value
from dbt.adapters.silt.engine.kernel.table.schema import DataType, DecimalType
from dbt.adapters.silt.engine.sql.conditions.conditions import Operand
from dbt.adapters.silt.engine.sql.spans import Tokens
from dbt.adapters.silt.engine.sql.tokens import Kind, Token, is_exact_string, string_value

Strings: TypeAlias = Callable[[Token], str | None]
"""Returns the value of a token that is a string, if the value is known."""


class LiteralKind(Enum):
    """The type that Spark gives a literal."""

    NULL = "null"
    BOOLEAN = "boolean"
    INTEGER = "integer"
    DECIMAL = "decimal"
    DOUBLE = "double"
    STRING = "string"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMP_NTZ = "timestamp_ntz"


@dataclass(frozen=True)
class SqlLiteral:
    """A literal: text of a number or string, word of a boolean; for `DATE '...'` and casts to it, the string inside."""

    kind: LiteralKind
    text: str


def exact_string(token: Token) -> str | None:
    """Returns the value of a string without quotes and escapes, which every session reads alike."""
    return token.text[1:-1] if is_exact_string(token) else None


def default_string(token: Token) -> str | None:
    """Returns the value of a string with Spark's default settings for quotes and escapes."""
    return string_value(token) if token.kind in (Kind.STRING, Kind.DOUBLE_QUOTED) else None


def read_literal(tokens: Tokens, operand: Operand, strings: Strings = exact_string) -> SqlLiteral | None:
    """Returns the operand as a literal, if it is a literal."""
    found = tokens[operand.first : operand.after]
    if len(found) == 1:
        return _single(found, strings)
    if len(found) == 2 and found[0].word in ("-", "+"):
        number = _single(found[1:], strings) if found[1].kind is Kind.NUMBER else None
        sign = "-" if found[0].word == "-" else ""
        return None if number is None else SqlLiteral(number.kind, sign + number.text)
    if len(found) == 2 and found[0].word in _TYPED:
        text = strings(found[1])
        return None if text is None else SqlLiteral(_TYPED[found[0].word], text)
    if len(found) == 6 and [found[0].word, found[1].word, found[3].word, found[5].word] == ["CAST", "(", "AS", ")"]:
        return _cast(_single(found[2:3], strings), found[4].word)
    if len(found) == 3 and found[1].word == "::":
        return _cast(_single(found[:1], strings), found[2].word)
    if len(found) > 3 and (found[0].word, found[1].word) == ("COALESCE", "("):
        return _first_of(tokens, operand, strings)
    return None


def value_of(literal: SqlLiteral, column: DataType, time_zone: str) -> Value | None:
    """Converts the literal to the column's type, or returns None if Spark might convert it differently.

    A NULL has no value: check its kind.
    """
    name = "decimal" if isinstance(column, DecimalType) else getattr(column, "name", "")
    convert = _CONVERSIONS.get((name, literal.kind))
    return None if convert is None else convert(literal.text, column, time_zone)


def fraction_of(literal: SqlLiteral, column: DataType) -> Decimal | None:
    """Returns the non-integral number that an integer column is compared with, if the literal is such a number."""
    if literal.kind not in (LiteralKind.DECIMAL, LiteralKind.DOUBLE) or getattr(column, "name", "") not in _INTEGERS:
        return None
    number = _exact(literal.text)
    return None if number is None or number == number.to_integral_value() else number


# Parsing


_TYPED: Mapping[str, LiteralKind] = {
    "DATE": LiteralKind.DATE,
    "TIMESTAMP": LiteralKind.TIMESTAMP,
    "TIMESTAMP_LTZ": LiteralKind.TIMESTAMP,
    "TIMESTAMP_NTZ": LiteralKind.TIMESTAMP_NTZ,
}
_WORDS = {"NULL": LiteralKind.NULL, "TRUE": LiteralKind.BOOLEAN, "FALSE": LiteralKind.BOOLEAN}


def _single(found: Tokens, strings: Strings) -> SqlLiteral | None:
    token = found[0]
    if token.kind in (Kind.STRING, Kind.DOUBLE_QUOTED):
        text = strings(token)
        return None if text is None else SqlLiteral(LiteralKind.STRING, text)
    if token.kind is Kind.NUMBER:
        return _number(token.text.upper())
    kind = _WORDS.get(token.word)
    return None if kind is None else SqlLiteral(kind, token.word)


def _first_of(tokens: Tokens, call: Operand, strings: Strings) -> SqlLiteral | None:
    """Returns the first of literals of the same kind, which COALESCE returns if it is not NULL."""
    choices: list[SqlLiteral | None] = []
    first = call.first + 2
    for at in range(first, call.after):
        if tokens[at].word == "," or at == call.after - 1:
            choices.append(read_literal(tokens, Operand(first, at), strings))
            first = at + 1
    kinds = {None if choice is None else choice.kind for choice in choices}
    return choices[0] if len(kinds) == 1 and kinds != {LiteralKind.NULL} else None


def _number(text: str) -> SqlLiteral | None:
    if text.endswith("BD"):
        return SqlLiteral(LiteralKind.DECIMAL, text[:-2])
    if text.endswith("F"):
        return None
    if text.endswith("D"):
        return SqlLiteral(LiteralKind.DOUBLE, text[:-1])
    if text[-1] in "LSY":
        return SqlLiteral(LiteralKind.INTEGER, text[:-1])
    if "E" in text:
        return SqlLiteral(LiteralKind.DOUBLE, text)
    return SqlLiteral(LiteralKind.DECIMAL if "." in text else LiteralKind.INTEGER, text)


def _cast(literal: SqlLiteral | None, type_name: str) -> SqlLiteral | None:
    """Returns a string cast to a day, a moment or a string."""
    if literal is None or literal.kind is not LiteralKind.STRING:
        return None
    return literal if type_name == "STRING" else _retyped(literal, _TYPED.get(type_name))


def _retyped(literal: SqlLiteral, kind: LiteralKind | None) -> SqlLiteral | None:
    return None if kind is None else SqlLiteral(kind, literal.text)


# Converting


_INTEGERS: Mapping[str, int] = {"byte": 7, "short": 15, "integer": 31, "long": 63}
# Below this, every integer is exact as a double, and no larger integer rounds into this range.
_EXACT_DOUBLES: Final = 1 << 53
_EXACT_FLOATS: Final = 1 << 24
# A decimal literal with at most so many digits compares with any integer in a type that holds both.
_SHORT_DECIMAL: Final = 18
_MAX_PRECISION: Final = 38


def _as_decimal(text: str) -> Decimal | None:
    """Returns the number, unless its exponent is too large for Python."""
    try:
        return Decimal(text)
    except ArithmeticError:
        return None


def _exact(text: str) -> Decimal | None:
    """Returns the number of a decimal or double literal, if an integer compares with it exactly."""
    number = _as_decimal(text)
    if number is None:
        return None
    is_short = len(number.as_tuple().digits) <= _SHORT_DECIMAL and abs(number.adjusted()) <= _SHORT_DECIMAL
    return number if is_short and abs(number) < _EXACT_DOUBLES else None


def _integer(text: str, column: DataType, _time_zone: str) -> Value | None:
    number, bits = int(text), _INTEGERS[getattr(column, "name", "")]
    return number if -(1 << bits) <= number < 1 << bits else None


def _integral(text: str, column: DataType, time_zone: str) -> Value | None:
    number = _exact(text)
    if number is None or number != number.to_integral_value():
        return None
    return _integer(str(int(number)), column, time_zone)


def _decimal(text: str, column: DataType, _time_zone: str) -> Value | None:
    """Returns the number if a single decimal type holds all values of the column and the literal."""
    number = _as_decimal(text)
    if number is None or not isinstance(column, DecimalType):
        return None
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    whole = max(len(digits) + exponent, 0)
    if "." not in text:
        whole = max(whole, 10 if abs(number) < 1 << 31 else 20)  # the digits that Spark may assume for any integer
    fits = max(column.precision - column.scale, whole) + max(column.scale, scale) <= _MAX_PRECISION
    return number if fits else None


def _double_from_integer(text: str, _column: DataType, _time_zone: str) -> Value | None:
    number = int(text)
    return float(number) if -(1 << 63) <= number < 1 << 63 else None


def _float_from_integer(text: str, _column: DataType, _time_zone: str) -> Value | None:
    number = int(text)
    return float(number) if abs(number) <= _EXACT_FLOATS else None


def _double(text: str, _column: DataType, _time_zone: str) -> Value | None:
    number = float(text)
    return number if math.isfinite(number) else None


def _boolean(text: str, _column: DataType, _time_zone: str) -> Value | None:
    return text == "TRUE"


def _string(text: str, _column: DataType, _time_zone: str) -> Value | None:
    return text


_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOMENT = re.compile(
    r"(?P<local>[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?)?)"
    r"(?P<zone>Z|[+-][0-9]{2}:[0-9]{2})?"
)
# Years in which the time zone databases of Java and Python agree.
_SETTLED_YEARS: Final = range(1971, 2037)


def _day(text: str, _column: DataType, _time_zone: str) -> Value | None:
    if not _DAY.fullmatch(text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _local(text: str) -> datetime | None:
    try:
        if _DAY.fullmatch(text):
            return datetime.strptime(text, "%Y-%m-%d")
        form = "%Y-%m-%d %H:%M:%S.%f" if "." in text else "%Y-%m-%d %H:%M:%S"
        return datetime.strptime(text.replace("T", " "), form)
    except ValueError:
        return None


def _wall_clock(text: str, _column: DataType, _time_zone: str) -> Value | None:
    match = _MOMENT.fullmatch(text)
    return None if match is None or match["zone"] else _local(match["local"])


def _midnight(text: str, column: DataType, time_zone: str) -> Value | None:
    return _moment(text, column, time_zone) if _DAY.fullmatch(text) else None


def _wall_clock_midnight(text: str, column: DataType, time_zone: str) -> Value | None:
    return _wall_clock(text, column, time_zone) if _DAY.fullmatch(text) else None


def _moment(text: str, _column: DataType, time_zone: str) -> Value | None:
    match = _MOMENT.fullmatch(text)
    local = None if match is None else _local(match["local"])
    if match is None or local is None:
        return None
    zone = _zone(match["zone"] or time_zone)
    if zone is None:
        return None
    if isinstance(zone, ZoneInfo) and (local.year not in _SETTLED_YEARS or _is_irregular(local, zone)):
        return None
    try:
        return local.replace(tzinfo=zone).astimezone(timezone.utc)
    except OverflowError:
        return None


def _zone(name: str) -> tzinfo | None:
    if name in ("Z", "UTC", "GMT", "Etc/UTC", "Etc/GMT"):
        return timezone.utc
    match = re.fullmatch(r"([+-])([0-9]{2}):([0-9]{2})", name)
    if match:
        offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
        return timezone(-offset if match[1] == "-" else offset) if offset <= timedelta(hours=18) else None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _is_irregular(local: datetime, zone: ZoneInfo) -> bool:
    """Returns whether the wall clock showed this time twice, or never."""
    return zone.utcoffset(local.replace(fold=0)) != zone.utcoffset(local.replace(fold=1))


_Conversion = Callable[[str, DataType, str], "Value | None"]
_CONVERSIONS: Mapping[tuple[str, LiteralKind], _Conversion] = {
    **{(name, LiteralKind.INTEGER): _integer for name in _INTEGERS},
    **{(name, LiteralKind.DECIMAL): _integral for name in _INTEGERS},
    **{(name, LiteralKind.DOUBLE): _integral for name in _INTEGERS},
    ("decimal", LiteralKind.INTEGER): _decimal,
    ("decimal", LiteralKind.DECIMAL): _decimal,
    ("double", LiteralKind.INTEGER): _double_from_integer,
    ("double", LiteralKind.DECIMAL): _double,
    ("double", LiteralKind.DOUBLE): _double,
    ("float", LiteralKind.INTEGER): _float_from_integer,
    ("float", LiteralKind.DECIMAL): _double,
    ("float", LiteralKind.DOUBLE): _double,
    ("boolean", LiteralKind.BOOLEAN): _boolean,
    ("string", LiteralKind.STRING): _string,
    ("date", LiteralKind.STRING): _day,
    ("date", LiteralKind.DATE): _day,
    ("timestamp", LiteralKind.STRING): _moment,
    ("timestamp", LiteralKind.TIMESTAMP): _moment,
    ("timestamp", LiteralKind.DATE): _midnight,
    ("timestamp_ntz", LiteralKind.STRING): _wall_clock,
    ("timestamp_ntz", LiteralKind.TIMESTAMP_NTZ): _wall_clock,
    ("timestamp_ntz", LiteralKind.DATE): _wall_clock_midnight,
}
