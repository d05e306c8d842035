"""Makes the source of a MERGE stable, and derives from its keys which rows of the target can match.

A source that is read twice may differ (`rand()`, `current_timestamp()`, a `limit` without order). If a MERGE needs
more than one job, the source is therefore computed once and kept, and its keys' ranges are observed in the same pass.
The ranges rule out files of the target, and are the MERGE's read set for the conflict check.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, timezone
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DateType, NumericType, TimestampNTZType, TimestampType

from dbt.adapters.silt.engine.commands.merge.plan import KeyEquality, MergePlan
from dbt.adapters.silt.engine.commands.spark import errors
from dbt.adapters.silt.engine.commands.spark.frames import computed_once_and_observed
from dbt.adapters.silt.engine.commands.spark.types import kernel_schema
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.table.expressions import FALSE, TRUE, And, Comparison, Expression, In, IsNull, Or
from dbt.adapters.silt.engine.kernel.table.schema import DataType, DecimalType, PrimitiveType, StructType
from dbt.adapters.silt.engine.kernel.table.text_lengths import char_length
from dbt.adapters.silt.engine.sql.conditions.predicates import compares_otherwise

_MOST_VALUES: Final = 1000
"""The maximum number of distinct key values that are considered individually."""

_ROW_BYTES: Final = 32
_VALUE_BYTES: Final = 16
_OF_FIXED_SIZE: Final = (NumericType, BooleanType, DateType, TimestampType, TimestampNTZType)

_INTEGERS = frozenset(("byte", "short", "integer", "long"))
_EXACT = frozenset(("string", "date", "timestamp", "timestamp_ntz", "float", "double", "boolean"))
_EPOCH: Final = datetime(1970, 1, 1)
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()


@dataclass(frozen=True)
class StableSource:
    """A source that returns the same rows in every read.

    Args:
        frame: its rows, under the source's alias.
        rows: the row count.
        usable: the keys whose values can be compared with the target's statistics.
        predicate: the condition that a target row must meet to match any source row.
        size: the approximate size in memory, in bytes; None if unknown.
    """

    frame: DataFrame
    rows: int
    usable: tuple[KeyEquality, ...]
    predicate: Expression
    size: int | None = None


def stabilise(source: DataFrame, plan: MergePlan, schema: StructType) -> StableSource:
    """Computes the source once and keeps it.

    Args:
        schema: the target's schema.
    """
    aliased = source.alias(plan.source_alias)
    usable = _usable_keys(aliased, plan.keys, schema)
    metrics = ["count(1) as rows", f"{_size(source)} as size"]
    for position, key in enumerate(usable):
        value = _portable(key, schema)
        metrics += [
            f"min({value}) as min_{position}",
            f"max({value}) as max_{position}",
            f"count({value}) as present_{position}",
        ]
    kept, observed = computed_once_and_observed(aliased, [F.expr(text) for text in metrics])
    kept = kept.alias(plan.source_alias)
    parts = [_range(key, position, observed, schema) for position, key in enumerate(usable)]
    predicate = And(tuple(parts)) if parts else TRUE
    return StableSource(kept, int(observed["rows"]), usable, predicate, observed["size"])


def _size(source: DataFrame) -> str:
    """Returns SQL for the rows' approximate size in memory, in bytes; null if column names are duplicated."""
    names = [member.name for member in source.schema]
    if len({name.lower() for name in names}) < len(names):
        return "cast(null as bigint)"
    fixed = _ROW_BYTES + _VALUE_BYTES * len(names)
    varying = (m.name for m in source.schema if not isinstance(m.dataType, _OF_FIXED_SIZE))
    texts = (f"coalesce(octet_length(cast({quote(name)} as string)), 0)" for name in varying)
    return f"cast(sum({' + '.join((str(fixed), *texts))}) as bigint)"


def with_values(source: StableSource, schema: StructType, worthwhile: Sequence[str]) -> StableSource:
    """Adds the keys' individual values to the source's predicate, if there are few.

    Args:
        worthwhile: columns of the target, such as its partition columns, considered even if the source is large.
    """
    names = {name.lower() for name in worthwhile}
    parts = [source.predicate]
    for key in source.usable:
        if source.rows <= _MOST_VALUES or key.column.parts[-1].lower() in names:
            parts.append(_values(source, key, schema))
    return replace(source, predicate=And(tuple(parts)))


def _usable_keys(source: DataFrame, keys: Sequence[KeyEquality], schema: StructType) -> tuple[KeyEquality, ...]:
    if not keys:
        return ()
    selected = source.selectExpr(*(f"({key.source}\n) as k{position}" for position, key in enumerate(keys)))
    types = [member.type for member in kernel_schema(selected.schema)]
    return tuple(
        key
        for key, given in zip(keys, types, strict=True)
        if _comparable(given, _column_type(key, schema)) and not compares_otherwise(schema, key.column.parts)
    )


def _column_type(key: KeyEquality, schema: StructType) -> DataType | None:
    found: DataType | None = schema
    for part in key.column.parts:
        member = found.field(part) if isinstance(found, StructType) else None
        found = None if member is None else member.type
    return found


def _comparable(given: DataType, wanted: DataType | None) -> bool:
    """Returns whether Spark compares the types without a conversion that changes the order or merges values."""
    if isinstance(given, DecimalType) and isinstance(wanted, DecimalType):
        return True
    given_name, wanted_name = getattr(given, "name", None), getattr(wanted, "name", None)
    return (given_name in _INTEGERS and wanted_name in _INTEGERS) or (
        given_name in _EXACT and given_name == wanted_name
    )


def _portable(key: KeyEquality, schema: StructType) -> str:
    """Returns SQL for the key's value in a type that Python holds exactly, regardless of time zone and year."""
    text = f"({key.source}\n)"  # the line break ends a comment at the end of the expression
    match getattr(_column_type(key, schema), "name", None):
        case "date":
            return f"unix_date({text})"
        case "timestamp":
            return f"unix_micros({text})"
        case "timestamp_ntz":
            return f"timestampdiff(MICROSECOND, timestamp_ntz'1970-01-01 00:00:00', {text})"
        case _:
            return text


def _value(portable: Any, name: str | None) -> Any:
    """Converts the portable value to the kernel's type, or returns None if it is null or Python cannot hold it."""
    if portable is None:
        return None
    try:
        if name == "date":
            return date.fromordinal(_EPOCH_DAY + portable)
        if name == "timestamp":
            return _EPOCH.replace(tzinfo=timezone.utc) + timedelta(microseconds=portable)
        if name == "timestamp_ntz":
            return _EPOCH + timedelta(microseconds=portable)
    except (OverflowError, ValueError):
        return None
    return None if isinstance(portable, float) and math.isnan(portable) else portable


def _range(key: KeyEquality, position: int, observed: Mapping[str, Any], schema: StructType) -> Expression:
    present = int(observed[f"present_{position}"])
    name = getattr(_column_type(key, schema), "name", None)
    least, greatest = (_value(observed[f"{bound}_{position}"], name) for bound in ("min", "max"))
    parts = []
    if least is not None:
        parts.append(Comparison(">=", key.column, least))
    if greatest is not None:
        parts.append(Comparison("<=", key.column, greatest))
    return _with_null(FALSE if present == 0 else And(tuple(parts)), key, present < int(observed["rows"]))


def _with_null(values: Expression, key: KeyEquality, has_null: bool) -> Expression:
    """Returns the predicate on a key's values; also true for null if the source has a null that equals it."""
    return Or((values, IsNull(key.column))) if key.null_safe and has_null else values


def _values(source: StableSource, key: KeyEquality, schema: StructType) -> Expression:
    found = source.frame.selectExpr(f"{_portable(key, schema)} as value").distinct().limit(_MOST_VALUES + 1).collect()
    name = getattr(_column_type(key, schema), "name", None)
    values = [_value(row["value"], name) for row in found if row["value"] is not None]
    if len(found) > _MOST_VALUES or any(value is None for value in values):
        return TRUE
    return _with_null(In(key.column, tuple(values)), key, any(row["value"] is None for row in found))


def as_stored(plan: MergePlan, source: DataFrame, schema: StructType) -> MergePlan:
    """Returns the plan with the source's strings padded as the target's `char` columns store them.

    Only the keys are changed; the statement that the log records is unchanged.

    Args:
        schema: the target's schema.
    """
    lengths = {key: length for key in plan.keys if (length := char_length(schema, key.column.parts)) is not None}
    if not lengths:
        return plan
    on = plan.condition
    # From the last key to the first, so that the positions of earlier keys remain valid.
    for key in sorted(_of_texts(list(lengths), source, plan.source_alias), key=lambda each: each.start, reverse=True):
        on = on[: key.start] + _padded(key.source, lengths[key]) + on[key.start + len(key.source) :]
    return replace(plan, as_run=on)


def _of_texts(keys: Sequence[KeyEquality], source: DataFrame, alias: str) -> list[KeyEquality]:
    """Returns the keys whose source values are strings."""
    with errors.mapped():
        values = source.alias(alias).selectExpr(*(f"({key.source}\n) as k{at}" for at, key in enumerate(keys)))
        found = kernel_schema(values.schema)
    return [key for key, member in zip(keys, found, strict=True) if member.type == PrimitiveType("string")]


def _padded(text: str, length: int) -> str:
    # The line break ends a comment at the end of the expression.
    bare = f"rtrim({text}\n)"
    return f"rpad({bare}, greatest({length}, char_length({bare})), ' ')"
