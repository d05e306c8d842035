"""Type widening: a column gets a wider type, and its older files keep the narrower type.

Spark reads such a file as the wider type, for every change in the specification. Other writers also change whole
numbers to decimals with fewer digits, just enough for the type's values; Spark reads these with the schema of
`readable_by_spark`. Source: the Delta specification, section "Type Widening".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from dbt.adapters.silt.engine.kernel.errors import CorruptLogError, UnsupportedFeatureError
from dbt.adapters.silt.engine.kernel.table.schema import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    all_fields,
    data_type_from_json,
    data_type_to_json,
    map_fields,
)

TYPE_CHANGES: Final = "delta.typeChanges"
"""The key of a column's metadata that lists its type changes, the oldest first."""

_WIDER: Mapping[str, frozenset[str]] = {
    "byte": frozenset(("short", "integer", "long", "double")),
    "short": frozenset(("integer", "long", "double")),
    "integer": frozenset(("long", "double")),
    "float": frozenset(("double",)),
    "date": frozenset(("timestamp_ntz",)),
}
# The digits before the point that hold every value of an integer type, as the specification counts them. Spark's
# Parquet reader requires as many.
_DIGITS = {"byte": 10, "short": 10, "integer": 10, "long": 20}
# Digits of the greatest value of the type.
_FEWEST_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 19}
_MOST_PRECISION = 38


@dataclass(frozen=True)
class TypeChange:
    """A change of a column's type.

    Attributes:
        field_path: path from the column to an element, key or value in it, such as `element.value`; empty for the
            column.
    """

    from_type: DataType
    to_type: DataType
    field_path: str = ""

    def to_json(self) -> dict[str, Any]:
        path = {"fieldPath": self.field_path} if self.field_path else {}
        return {"fromType": data_type_to_json(self.from_type), "toType": data_type_to_json(self.to_type), **path}


def type_changes(field: StructField) -> tuple[TypeChange, ...]:
    """Returns the changes that the column's metadata lists.

    Raises:
        CorruptLogError: if the list cannot be read.
    """
    try:
        return tuple(
            TypeChange(
                data_type_from_json(change["fromType"]),
                data_type_from_json(change["toType"]),
                change.get("fieldPath") or "",
            )
            for change in field.metadata.get(TYPE_CHANGES) or ()
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise CorruptLogError(f"the type changes of the column `{field.name}` cannot be read ({error!r})") from error


def is_widening(old: DataType, new: DataType) -> bool:
    """Returns whether the specification lists this change, so that every reader of the feature supports it."""
    if isinstance(new, DecimalType):
        if isinstance(old, DecimalType):
            more_digits, more_scale = new.precision - old.precision, new.scale - old.scale
            return old != new and more_digits >= more_scale >= 0
        digits = _DIGITS.get(getattr(old, "name", ""))
        return digits is not None and new.precision - digits >= new.scale >= 0
    return getattr(new, "name", "") in _WIDER.get(getattr(old, "name", ""), ())


def common_type(first: DataType, second: DataType) -> DataType | None:
    """Returns the narrowest type in which readers can read values of both types, or None if no type can."""
    if first == second or is_widening(first, second):
        return second
    if is_widening(second, first):
        return first
    sizes = [_decimal_size(each) for each in (first, second)]
    if None in sizes or not any(isinstance(each, DecimalType) for each in (first, second)):
        return None
    digits, scale = (max(size[at] for size in sizes if size is not None) for at in (0, 1))
    return DecimalType(digits + scale, scale) if digits + scale <= _MOST_PRECISION else None


def _decimal_size(data_type: DataType) -> tuple[int, int] | None:
    """Returns the digits before and after the point of a decimal or whole number; None for other types."""
    if isinstance(data_type, DecimalType):
        return data_type.precision - data_type.scale, data_type.scale
    digits = _DIGITS.get(getattr(data_type, "name", ""))
    return None if digits is None else (digits, 0)


def check_known(schema: StructType, table: str) -> None:
    """Raises an error unless the files with earlier types of the columns can be read.

    Raises:
        UnsupportedFeatureError: if a type change of a column may lose values, or is to a decimal with which Spark
            cannot read the files.
    """
    for field in all_fields(schema):
        for change in type_changes(field):
            if not _keeps_values(change) or not _is_readable(field, change):
                raise UnsupportedFeatureError(
                    f"the type of the column `{field.name}` was changed from {change.from_type.sql_name} to "
                    f"{change.to_type.sql_name}, a type change that this version does not support",
                    table=table,
                    details={"features": ("typeWidening",), "column": field.name},
                )


def widened(field: StructField, new_type: DataType) -> StructField | None:
    """Returns the column with a wider type and the change recorded, or None if the change is not a widening."""
    changes = _changes(field.type, new_type, ())
    if not changes or not all(is_widening(change.from_type, change.to_type) for change in changes):
        return None
    recorded = [*field.metadata.get(TYPE_CHANGES, ()), *(change.to_json() for change in changes)]
    typed = StructField(field.name, new_type, field.nullable, field.metadata)
    return typed.with_metadata(**{TYPE_CHANGES: recorded})


def without_changes(schema: StructType) -> StructType:
    """Returns the schema as readers of the rows see it: without the lists of type changes."""
    return map_fields(schema, lambda field: field.with_metadata(**{TYPE_CHANGES: None}))


def readable_by_spark(schema: StructType) -> StructType:
    """Returns the schema with which Spark reads all files of the table, including files with earlier types.

    Spark reads a file's whole numbers as a decimal only if the decimal has 10 digits before the point, 20 for `long`.
    """
    return map_fields(schema, _with_room)


def _keeps_values(change: TypeChange) -> bool:
    """Returns whether the new type holds every value of the old type."""
    old, new = change.from_type, change.to_type
    digits = _FEWEST_DIGITS.get(getattr(old, "name", ""))
    if isinstance(new, DecimalType) and digits is not None:
        return new.precision - digits >= new.scale >= 0
    return is_widening(old, new)


def _is_readable(field: StructField, change: TypeChange) -> bool:
    """Returns whether a decimal of the column's scale has room for the digits that Spark requires."""
    found: list[DataType] = []

    def note(inner: DataType) -> DataType:
        found.append(_roomy(inner, change))
        return inner

    _edited_at(field.type, _steps(change), note)
    return all(not isinstance(inner, DecimalType) or inner.precision <= _MOST_PRECISION for inner in found)


def _with_room(field: StructField) -> StructField:
    data_type = field.type
    for change in type_changes(field):
        data_type = _edited_at(data_type, _steps(change), partial(_roomy, change=change))
    return replace(field, type=data_type)


def _roomy(data_type: DataType, change: TypeChange) -> DataType:
    """Returns the decimal type that can hold every whole number of the column's earlier type."""
    digits = _DIGITS.get(getattr(change.from_type, "name", ""), 0)
    if not isinstance(data_type, DecimalType):
        return data_type
    return replace(data_type, precision=max(data_type.precision, data_type.scale + digits))


def _steps(change: TypeChange) -> list[str]:
    return change.field_path.split(".") if change.field_path else []


def _edited_at(data_type: DataType, steps: Sequence[str], edit: Callable[[DataType], DataType]) -> DataType:
    """Returns the type with the element, key or value at a path edited, or unchanged if the path does not exist."""
    if not steps:
        return edit(data_type)
    match data_type, steps[0]:
        case ArrayType(), "element":
            return replace(data_type, element_type=_edited_at(data_type.element_type, steps[1:], edit))
        case MapType(), "key":
            return replace(data_type, key_type=_edited_at(data_type.key_type, steps[1:], edit))
        case MapType(), "value":
            return replace(data_type, value_type=_edited_at(data_type.value_type, steps[1:], edit))
    return data_type


def _changes(old: DataType, new: DataType, path: tuple[str, ...]) -> list[TypeChange]:
    """Returns the differences of two types, without struct members, which record their own changes."""
    if isinstance(old, ArrayType) and isinstance(new, ArrayType):
        return _changes(old.element_type, new.element_type, (*path, "element"))
    if isinstance(old, MapType) and isinstance(new, MapType):
        keys = _changes(old.key_type, new.key_type, (*path, "key"))
        return [*keys, *_changes(old.value_type, new.value_type, (*path, "value"))]
    return [] if old == new else [TypeChange(old, new, ".".join(path))]
