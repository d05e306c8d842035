"""Shows a row that breaks a rule, so that users can find it."""

from __future__ import annotations

import itertools
from functools import partial

from pyspark.sql import Column
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.table.schema import (
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    primitive_types,
)
from dbt.adapters.silt.engine.sql.query.column_names import column_names
from dbt.adapters.silt.engine.sql.tokens import tokenize

_COLUMNS = 8
_CHARACTERS = 200


def example_row(schema: StructType, rule: str = "") -> Column:
    """Returns a row as JSON: the rule's columns, then further columns, at most eight; no binary values and variants.

    Args:
        rule: the expression that the row breaks.
    """
    named = {part.lower() for each in column_names(tokenize(rule)) for part in each.parts} if rule else set()
    members = sorted(schema, key=lambda member: member.name.lower() not in named)
    first = [_column(each) for each in itertools.islice(filter(_has_shown_part, members), _COLUMNS)]
    return F.to_json(F.struct(*first), {"ignoreNullFields": "false"}) if first else F.lit("")


def shown(example: str | None) -> str:
    """Returns an example as the end of an error's message."""
    if not example:
        return ""
    text = example if len(example) <= _CHARACTERS else example[:_CHARACTERS] + "..."
    return f", for example {text}"


def _column(member: StructField) -> Column:
    column = F.col(quote(member.name))
    is_nested = isinstance(member.type, ArrayType | MapType | StructType)
    return (_visible(member.type, column) if is_nested else column.cast("string")).alias(member.name)


def _visible(data_type: DataType, value: Column) -> Column:
    """Returns the value without the parts that are not shown; the type must have parts that are shown."""
    if _is_shown_whole(data_type):
        return value
    if isinstance(data_type, StructType):
        parts = [_visible(each.type, value.getField(each.name)).alias(each.name) for each in _shown_members(data_type)]
        return F.when(value.isNotNull(), F.struct(*parts))
    if isinstance(data_type, ArrayType):
        return F.transform(value, partial(_visible, data_type.element_type))
    assert isinstance(data_type, MapType)
    return F.transform_values(value, lambda _, each: _visible(data_type.value_type, each))


def _shown_members(data_type: StructType) -> list[StructField]:
    return list(filter(_has_shown_part, data_type))


def _has_shown_part(member: StructField) -> bool:
    return _has_shown(member.type)


def _has_shown(data_type: DataType) -> bool:
    """Returns whether an example shows any part of values of the type."""
    if isinstance(data_type, StructType):
        return bool(_shown_members(data_type))
    if isinstance(data_type, ArrayType):
        return _has_shown(data_type.element_type)
    if isinstance(data_type, MapType):
        return _is_shown_whole(data_type.key_type) and _has_shown(data_type.value_type)
    return _is_shown_whole(data_type)


def _is_shown_whole(data_type: DataType) -> bool:
    return not any(each.name in ("binary", "variant", "void") for each in primitive_types(data_type))
