"""ValueOrder: the comparable form of a column's values for predicates, statistics and partition values.

| column type | form |
|---|---|
| byte, short, integer, long, boolean | int64 |
| date | int64: days since 1970-01-01 |
| timestamp, timestamp_ntz | int64: microseconds since 1970-01-01 00:00, in UTC or in local time |
| float, double | float64; NaN has no form |
| decimal | decimal256(76, 38), which holds every decimal of every type |
| string | string, by UTF-8 bytes |

Values of other types are never compared. A string or value that has no form, or another type, becomes null.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, ClassVar, Final

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.silt.engine.kernel.errors import CorruptLogError
from dbt.adapters.silt.engine.kernel.table.schema import DataType, DecimalType, StructField

DECIMAL_FORM: Final = pa.decimal256(76, 38)

_INT64_LIMIT = 1 << 63
_WHOLE = re.compile("[+-]?[0-9]{1,400}")
_EPOCH = datetime(1970, 1, 1)
_EPOCH_UTC = _EPOCH.replace(tzinfo=timezone.utc)
_MOMENT = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ](?P<time>[0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(?:\.(?P<fraction>[0-9]+))?)?"
    r" ?(?P<zone>Z|(?P<sign>[+-])(?P<hours>[0-9]{2}):?(?P<minutes>[0-9]{2})(?::?(?P<seconds>[0-9]{2}))?)?"
)


class ValueOrder:
    """The rules for the values of a column type: their form, and their order.

    Attributes:
        form: the Arrow type of the form.
        json_form: the Arrow type in which a statistic is read from JSON.
    """

    form: ClassVar[pa.DataType] = pa.int64()
    json_form: ClassVar[pa.DataType] = pa.int64()

    def encode(self, value: Any) -> Any:
        """Returns a value of the column's type (see `expressions.Value`) in its form, or None if it has no form."""
        whole = isinstance(value, int) and not isinstance(value, bool)
        return value if whole and -_INT64_LIMIT <= value < _INT64_LIMIT else None

    def from_json(self, value: Any) -> Any:
        """Converts a statistic from `json.loads(..., parse_float=Decimal)` to a value of `json_form`."""
        return ValueOrder.encode(self, value)

    def from_statistics(self, values: pa.Array) -> pa.Array:
        """Converts statistics of the type `json_form` to their form."""
        return values

    def least(self, minima: pa.Array) -> pa.Array:
        """Returns, in their form, the lowest values that statistics of the type `json_form` may represent."""
        return self.from_statistics(minima)

    def greatest(self, maxima: pa.Array) -> pa.Array:
        """Returns, in their form, the greatest values that statistics of the type `json_form` may represent."""
        return self.from_statistics(maxima)

    def from_texts(self, texts: pa.Array) -> pa.Array:
        """Converts partition values, which are strings in the log, to their form."""
        try:
            return self._cast(texts)
        except pa.ArrowInvalid:
            return pa.array([None if text is None else self._parsed(text) for text in texts.to_pylist()], self.form)

    def _cast(self, texts: pa.Array) -> pa.Array:
        """Converts all strings at once.

        Raises:
            pa.ArrowInvalid: if a string is not of the type, or has a spelling that Arrow does not read.
        """
        return texts.cast(self.form)

    def _parsed(self, text: str) -> Any:
        return self.encode(int(text)) if _WHOLE.fullmatch(text) else None


class Booleans(ValueOrder):
    json_form = pa.bool_()

    def encode(self, value: Any) -> Any:
        return int(value) if isinstance(value, bool) else None

    def from_json(self, value: Any) -> Any:
        return value if isinstance(value, bool) else None

    def from_statistics(self, values: pa.Array) -> pa.Array:
        return values.cast(pa.int64())

    def _cast(self, texts: pa.Array) -> pa.Array:
        return texts.cast(pa.bool_()).cast(pa.int64())

    def _parsed(self, text: str) -> Any:
        return {"true": 1, "false": 0}.get(text.lower())


class Doubles(ValueOrder):
    """Doubles: a literal may be NaN, which is above all numbers; statistics and partition values of NaN are ignored."""

    form = pa.float64()
    json_form = pa.float64()

    def encode(self, value: Any) -> Any:
        return value if isinstance(value, float) else None

    def from_json(self, value: Any) -> Any:
        if not isinstance(value, int | Decimal) or isinstance(value, bool):
            return None
        try:
            number = float(value)
        except OverflowError:
            return None
        return number if math.isfinite(number) else None

    def from_statistics(self, values: pa.Array) -> pa.Array:
        return pc.if_else(pc.is_nan(values), pa.scalar(None, pa.float64()), values)

    def _cast(self, texts: pa.Array) -> pa.Array:
        return self.from_statistics(texts.cast(pa.float64()))

    def _parsed(self, text: str) -> Any:
        try:
            number = float(text)
        except ValueError:
            return None
        return None if math.isnan(number) else number


class Floats(Doubles):
    """Floats: a statistic has the shortest digits of a 32-bit number, which only a 32-bit float reads back exactly."""

    def from_statistics(self, values: pa.Array) -> pa.Array:
        return super().from_statistics(values.cast(pa.float32(), safe=False).cast(pa.float64()))

    def _parsed(self, text: str) -> Any:
        return self.from_statistics(pa.array([super()._parsed(text)], pa.float64()))[0].as_py()


class WidenedFloats(Doubles):
    """Values of a `double` column that was a `float` column: statistics may have the digits of either type."""

    def least(self, minima: pa.Array) -> pa.Array:
        return pc.min_element_wise(self.from_statistics(minima), Floats().from_statistics(minima))

    def greatest(self, maxima: pa.Array) -> pa.Array:
        return pc.max_element_wise(self.from_statistics(maxima), Floats().from_statistics(maxima))


_LONG_EXPONENT: Final = r"[0-9.][eE][+-]?[0-9]{4,}"

_MOST_DIGITS: Final = 1000


def has_long_exponents(texts: pa.Array) -> bool:
    """Returns whether a number in any string may end the process if Arrow converts it to a decimal."""
    return bool(pc.any(pc.match_substring_regex(texts, _LONG_EXPONENT)).as_py())


def _is_safe(number: Decimal) -> bool:
    """Returns whether Arrow can convert the number to a decimal, or refuse it; a long exponent ends the process."""
    _, digits, exponent = number.as_tuple()
    return isinstance(exponent, int) and len(digits) <= _MOST_DIGITS and abs(exponent) <= _MOST_DIGITS


class Decimals(ValueOrder):
    """Decimals; a number with more than a thousand digits has no form, even if most of them are zeros."""

    form = DECIMAL_FORM
    json_form = DECIMAL_FORM

    def __init__(self, scale: int) -> None:
        # Below this, a 64-bit float has all digits of a decimal of that scale.
        self.float_limit = pa.scalar(Decimal(10) ** (15 - scale), DECIMAL_FORM)

    def encode(self, value: Any) -> Any:
        if not isinstance(value, int | Decimal) or not _is_safe(Decimal(value)):
            return None
        try:
            return pa.scalar(Decimal(value), DECIMAL_FORM).as_py()
        except pa.ArrowInvalid:
            return None

    def from_json(self, value: Any) -> Any:
        return self.encode(value)

    @staticmethod
    def text(form: Decimal, scale: int) -> str:
        """Formats a decimal with the digits of its column's type, without Python's arithmetic, which rounds to 28."""
        return format(form, f".{scale}f")

    def _cast(self, texts: pa.Array) -> pa.Array:
        if has_long_exponents(texts):
            raise pa.ArrowInvalid("the exponent of a number is too long")
        return super()._cast(texts)

    def _parsed(self, text: str) -> Any:
        try:
            return self.encode(Decimal(text))
        except ArithmeticError:
            return None


class Strings(ValueOrder):
    form = pa.string()
    json_form = pa.string()

    def encode(self, value: Any) -> Any:
        return value if isinstance(value, str) and _is_utf8(value) else None

    def from_json(self, value: Any) -> Any:
        return self.encode(value)


class Dates(ValueOrder):
    json_form = pa.string()

    def encode(self, value: Any) -> Any:
        is_date = isinstance(value, date) and not isinstance(value, datetime)
        return value.toordinal() - _EPOCH.toordinal() if is_date else None

    def from_json(self, value: Any) -> Any:
        return value if isinstance(value, str) else None

    def from_statistics(self, values: pa.Array) -> pa.Array:
        return self.from_texts(values)

    def _cast(self, texts: pa.Array) -> pa.Array:
        return texts.cast(pa.date32()).cast(pa.int32()).cast(pa.int64())

    def _parsed(self, text: str) -> Any:
        try:
            return self.encode(date.fromisoformat(text))
        except ValueError:
            return None


class Timestamps(ValueOrder):
    """Instants, or local times if `zoned` is false. An instant whose text has no zone is read as UTC."""

    json_form = pa.string()

    def __init__(self, zoned: bool) -> None:
        self.zoned = zoned

    def encode(self, value: Any) -> Any:
        if not isinstance(value, datetime) or (value.tzinfo is not None) != self.zoned:
            return None
        # Subtracts without a conversion to UTC, whose first and last hours of all years have no datetime.
        return (value - (_EPOCH_UTC if self.zoned else _EPOCH)) // timedelta(microseconds=1)

    def from_json(self, value: Any) -> Any:
        return value if isinstance(value, str) else None

    def from_statistics(self, values: pa.Array) -> pa.Array:
        return self.from_texts(values)

    def _cast(self, texts: pa.Array) -> pa.Array:
        return texts.cast(pa.timestamp("us", "UTC" if self.zoned else None)).cast(pa.int64())

    def _parsed(self, text: str) -> Any:
        match = _MOMENT.fullmatch(text)
        if match is None or (match["zone"] is not None and not self.zoned):
            return None
        try:
            start = datetime.fromisoformat(f"{match['date']}T{match['time'] or '00:00'}")
        except ValueError:
            return None
        fraction = int((match["fraction"] or "0")[:6].ljust(6, "0"))
        return (start - _EPOCH - _offset(match)) // timedelta(microseconds=1) + fraction


def value_order_of(column_type: DataType) -> ValueOrder | None:
    """Returns the order of a column of that type, or None if its values are never compared."""
    if isinstance(column_type, DecimalType):
        return Decimals(column_type.scale)
    return _VALUE_ORDERS.get(getattr(column_type, "name", ""))


def not_a_value(text: str, field: StructField) -> CorruptLogError:
    """Returns the error for a partition value of the log that is not a value of its column's type."""
    return CorruptLogError(
        f"`{text}` is not a value of the partition column `{field.name}` of type {field.type.sql_name}",
        remedy="Restore the table to a version without that file",
    )


def _is_utf8(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _offset(match: re.Match[str]) -> timedelta:
    if match["sign"] is None:
        return timedelta()
    east = timedelta(hours=int(match["hours"]), minutes=int(match["minutes"]), seconds=int(match["seconds"] or 0))
    return -east if match["sign"] == "-" else east


_VALUE_ORDERS: Mapping[str, ValueOrder] = {
    "byte": ValueOrder(),
    "short": ValueOrder(),
    "integer": ValueOrder(),
    "long": ValueOrder(),
    "boolean": Booleans(),
    "float": Floats(),
    "double": Doubles(),
    "string": Strings(),
    "date": Dates(),
    "timestamp": Timestamps(zoned=True),
    "timestamp_ntz": Timestamps(zoned=False),
}
