"""Converts values of one type to another by the rules of store assignment.

Numbers convert to numbers, dates and times to dates and times, every simple type to strings, strings to every simple
type; arrays, maps and structs convert part by part. Nothing else converts. A `char` is padded with blanks, and blanks
beyond the length of a `char` or a `varchar` are cut off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.spark.types import spark_type
from dbt.adapters.silt.engine.kernel.identifiers import quote_if_needed
from dbt.adapters.silt.engine.kernel.table import collations
from dbt.adapters.silt.engine.kernel.table.schema import ArrayType, DataType, DecimalType, MapType, StructType, nullable
from dbt.adapters.silt.engine.kernel.table.text_lengths import length_limit, plain_type

_INTEGERS: Final = ("byte", "short", "integer", "long")
_NUMBERS: Final = frozenset((*_INTEGERS, "float", "double", "decimal"))
_TIMES: Final = frozenset(("date", "timestamp", "timestamp_ntz"))
_DIGITS: Final = {"byte": 3, "short": 5, "integer": 10, "long": 20}
"""Digits that a decimal needs before the point to hold every value of the type, as Spark counts them."""

Change = Callable[[Column], Column]


@dataclass(frozen=True)
class Conversion:
    """A conversion of one type to another.

    Args:
        convert: returns the value in the new type, or null if that type cannot hold it.
        loses: returns a boolean column, true if the new type cannot hold the value; set only if such values exist.
    """

    convert: Change
    loses: Change | None = None


_IDENTITY: Final = Conversion(lambda column: column)


def conversion(source: DataType, target: DataType, by_name: bool) -> Conversion | None:
    """Returns the conversion of one type to another, or None if the types do not convert.

    Args:
        target: a type with its `char` and `varchar`, as `declared_type` returns it. A string that is too long is
            unchanged
            unchanged: the table's checks find it (`checks.table_checks`).
        by_name: whether members of structs are matched by name, with null for missing members; else by position.
    """
    if nullable(source) == nullable(target):
        return _IDENTITY
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        return _array(source, target, by_name)
    if isinstance(source, MapType) and isinstance(target, MapType):
        return _map(source, target, by_name)
    if isinstance(source, StructType) and isinstance(target, StructType):
        return _struct(source, target, by_name)
    return _simple(source, target)


def lacking(source: DataType, target: DataType, path: str) -> Iterator[str]:
    """Yields the paths of the struct members that the target has and the source lacks, by name.

    Args:
        path: the path of the value itself; `element` is appended for an array, `key` and `value` for a map.
    """
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        yield from lacking(source.element_type, target.element_type, f"{path}.element")
    if isinstance(source, MapType) and isinstance(target, MapType):
        yield from lacking(source.key_type, target.key_type, f"{path}.key")
        yield from lacking(source.value_type, target.value_type, f"{path}.value")
    if isinstance(source, StructType) and isinstance(target, StructType):
        for member in target:
            given, name = source.field(member.name), f"{path}.{quote_if_needed(member.name)}"
            yield from [name] if given is None else lacking(given.type, member.type, name)


def over(source: DataType, target: DataType, value: Column, old: Column) -> Column:
    """Converts a value to another type, and takes the members that its structs lack from `old`.

    If members are kept, a struct is null if both the value and `old` are null; otherwise, if the value is null. Arrays
    and maps keep no members, because their elements have no counterparts in `old`.

    Args:
        source, target: types that have a `conversion` by name.
        old: a value of the target type.
    """
    if not (isinstance(source, StructType) and isinstance(target, StructType) and _keeps(source, target)):
        found = conversion(source, target, by_name=True)
        return value if found is None else found.convert(value)
    parts = []
    for member in target:
        given, kept = source.field(member.name), old.getField(member.name)
        part = kept if given is None else over(given.type, member.type, value.getField(given.name), kept)
        parts.append(part.alias(member.name))
    return F.when(value.isNotNull() | old.isNotNull(), F.struct(*parts))


def _keeps(source: StructType, target: StructType) -> bool:
    """Returns whether the target has members, outside of arrays and maps, that the source lacks."""
    pairs = [(source.field(member.name), member.type) for member in target]
    return any(
        given is None
        or (isinstance(given.type, StructType) and isinstance(own, StructType) and _keeps(given.type, own))
        for given, own in pairs
    )


def fitted(column: Column, data_type: DataType) -> Column:
    """Pads and cuts strings of a column to the lengths of a type that differs from the column's only in lengths."""
    plain = plain_type(data_type)
    found = None if plain == data_type else conversion(plain, data_type, by_name=True)
    return column if found is None else found.convert(column)


def _fit(column: Column, limit: tuple[str, int]) -> Column:
    """Pads or cuts a string to a `char` or a `varchar`, as Spark's own tables store it."""
    kind, most = limit
    length = F.char_length(column)
    fits = F.when((length > most) & (F.char_length(F.rtrim(column)) <= most), F.substring(column, 1, most))
    if kind == "char":
        fits = fits.when(length < most, F.rpad(column, most, " "))
    return fits.otherwise(column)


def _simple(source: DataType, target: DataType) -> Conversion | None:
    limit = length_limit(target)
    if limit is not None:
        text = conversion(source, plain_type(target), by_name=True)
        return None if text is None else Conversion(lambda column: _fit(text.convert(column), limit))
    data_type = spark_type(target)
    kind, target_kind = _kind(source), _kind(target)
    if kind == "void":
        return Conversion(lambda column: column.cast(data_type))
    if kind is None or target_kind is None:
        return None
    if target_kind == "string" and kind != "variant":
        return Conversion(lambda column: column.cast(data_type))
    if kind == "string" and target_kind == "binary":
        return Conversion(lambda column: column.cast(data_type))
    known = (kind in _NUMBERS and target_kind in _NUMBERS) or (kind in _TIMES and target_kind in _TIMES)
    if not known and (kind != "string" or target_kind == "variant"):
        return None
    if _holds_all(source, target):
        return Conversion(lambda column: column.cast(data_type))
    return Conversion(
        lambda column: column.try_cast(data_type),
        lambda column: column.isNotNull() & column.try_cast(data_type).isNull(),
    )


def _kind(data_type: DataType) -> str | None:
    """Returns the name of a simple type, or None for arrays, maps and structs."""
    if isinstance(data_type, DecimalType):
        return "decimal"
    return None if isinstance(data_type, ArrayType | MapType | StructType) else collations.without(data_type.name)


def _holds_all(source: DataType, target: DataType) -> bool:
    """Returns whether the target type holds every value of the source type, rounding aside."""
    kind, target_kind = _kind(source), _kind(target)
    if kind == "string":
        return False
    if target_kind in ("float", "double") or (kind in _TIMES and target_kind == "date"):
        return True
    if kind == "date":
        return True
    if kind in _INTEGERS and target_kind in _INTEGERS:
        return _INTEGERS.index(kind) <= _INTEGERS.index(target_kind)
    if isinstance(target, DecimalType):
        room = target.precision - target.scale
        if isinstance(source, DecimalType):
            return source.precision - source.scale < room or (
                source.precision - source.scale == room and source.scale <= target.scale
            )
        return kind in _DIGITS and _DIGITS[kind] <= room
    return False


def _array(source: ArrayType, target: ArrayType, by_name: bool) -> Conversion | None:
    element = conversion(source.element_type, target.element_type, by_name)
    if element is None:
        return None
    loses = element.loses
    return Conversion(
        lambda column: F.transform(column, element.convert),
        None if loses is None else lambda column: F.exists(column, loses),
    )


def _map(source: MapType, target: MapType, by_name: bool) -> Conversion | None:
    key = conversion(source.key_type, target.key_type, by_name)
    value = conversion(source.value_type, target.value_type, by_name)
    if key is None or value is None or key.loses is not None:
        return None
    loses = value.loses
    return Conversion(
        lambda column: F.map_from_arrays(
            F.transform(F.map_keys(column), key.convert), F.transform(F.map_values(column), value.convert)
        ),
        None if loses is None else lambda column: F.exists(F.map_values(column), loses),
    )


def _struct(source: StructType, target: StructType, by_name: bool) -> Conversion | None:
    if by_name:
        if any(name not in target for name in source.names):
            return None
        members = [(member, source.field(member.name)) for member in target]
    elif len(source) == len(target):
        members = list(zip(target, source, strict=True))
    else:
        return None
    parts: list[tuple[str, Change]] = []
    losses: list[Change] = []
    for member, given in members:
        if given is None:
            parts.append((member.name, _null(member.type)))
            continue
        part = conversion(given.type, member.type, by_name)
        if part is None:
            return None
        parts.append((member.name, _within(given.name, part.convert)))
        if part.loses is not None:
            losses.append(_within(given.name, part.loses))

    def convert(column: Column) -> Column:
        return F.when(column.isNotNull(), F.struct(*(change(column).alias(name) for name, change in parts)))

    def lost(column: Column) -> Column:
        return column.isNotNull() & reduce(or_, (F.coalesce(loss(column), F.lit(False)) for loss in losses))

    return Conversion(convert, lost if losses else None)


def _within(name: str, change: Change) -> Change:
    return lambda column: change(column.getField(name))


def _null(data_type: DataType) -> Change:
    return lambda _: F.lit(None).cast(spark_type(plain_type(data_type)))
