"""Finds the files of a table that are in the partitions of new files.

Partition values are compared as values, not as strings: writers spell the same timestamp or `char` differently.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Final

import pyarrow as pa

from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.actions import AddFile
from dbt.adapters.silt.engine.kernel.table.active_files import files_table
from dbt.adapters.silt.engine.kernel.table.expressions import UNKNOWN, And, Column, Comparison, Expression, IsNull, Or
from dbt.adapters.silt.engine.kernel.table.schema import StructField
from dbt.adapters.silt.engine.kernel.table.text_lengths import has_char, text_form
from dbt.adapters.silt.engine.kernel.table.value_order import value_order_of

_MOST_PARTITIONS: Final = 500
"""For more partitions than this, the predicate of the read does not list the partitions."""

_EPOCH: Final = datetime(1970, 1, 1)


@dataclass(frozen=True)
class PartitionMatch:
    """The files of a snapshot in given partitions, and a predicate that holds for every row of these partitions."""

    files: pa.Table
    predicate: Expression


def match(snapshot: Snapshot, adds: Sequence[AddFile], null_safe: bool) -> PartitionMatch:
    """Returns the files of the snapshot that are in the partitions of `adds`.

    Args:
        null_safe: whether null equals null; else a partition with a null matches no partition.
    """
    fields = [snapshot.schema.require(name) for name in snapshot.partition_columns]
    wanted = {key for key in keys(files_table(adds), fields) if null_safe or None not in key}
    chosen = pa.array([key in wanted for key in keys(snapshot.files, fields)], pa.bool_())
    return PartitionMatch(snapshot.files.filter(chosen), _predicate(wanted, fields))


def keys(files: pa.Table, fields: Sequence[StructField]) -> list[tuple[Any, ...]]:
    """Returns each file's partition values in a form that is equal if the values are equal; None is null."""
    columns = [_forms(files, field) for field in fields]
    return list(zip(*columns, strict=True))


def as_strings(files: pa.Table, field: StructField) -> list[str | None]:
    """Returns each file's partition value as a string of the log; null and the empty string are returned as None."""
    return [dict(values).get(field.physical_name) or None for values in files["partition_values"].to_pylist()]


def _forms(files: pa.Table, field: StructField) -> list[Any]:
    found = [text if text is None else text_form(text, field) for text in as_strings(files, field)]
    order = value_order_of(field.type)
    forms = [None] * len(found) if order is None else order.from_texts(pa.array(found, pa.string())).to_pylist()
    # A value without a form, such as NaN, is compared as a string.
    return [text if form is None else form for text, form in zip(found, forms, strict=True)]


def _predicate(keys: Iterable[tuple[Any, ...]], fields: Sequence[StructField]) -> Expression:
    distinct = set(keys)
    if len(distinct) > _MOST_PARTITIONS:
        return UNKNOWN
    return Or(
        tuple(And(tuple(_equal(field, form) for field, form in zip(fields, key, strict=True))) for key in distinct)
    )


def _equal(field: StructField, form: Any) -> Expression:
    column = Column.of(field.name)
    if form is None:
        return IsNull(column)
    try:
        value = _value(field, form)
    except OverflowError:  # a timestamp outside of the years 1 to 9999 in UTC
        return UNKNOWN
    return UNKNOWN if value is None else Comparison("=", column, value)


def _value(field: StructField, form: Any) -> Any:
    """Converts a form of `kernel.table.value_order` to the column's type; returns None if the form is only a string."""
    name = getattr(field.type, "name", "")
    if has_char(field):
        return None  # another writer's file may have it with more or fewer trailing blanks
    if name == "string" or not isinstance(form, str):
        match name:
            case "boolean":
                return bool(form)
            case "date":
                return _EPOCH.date() + timedelta(days=form)
            case "timestamp":
                return _EPOCH.replace(tzinfo=timezone.utc) + timedelta(microseconds=form)
            case "timestamp_ntz":
                return _EPOCH + timedelta(microseconds=form)
            case _:
                return form
    return None
