"""Converts partition values, which are strings in the log, to Arrow values.

Source: the Delta specification, section "Partition Value Serialization". An empty string is null.
"""

from __future__ import annotations

import pyarrow as pa

from dbt.adapters.silt.engine.arrow.types import arrow_type
from dbt.adapters.silt.engine.kernel.errors import CorruptLogError
from dbt.adapters.silt.engine.kernel.table.schema import DataType, StructField
from dbt.adapters.silt.engine.kernel.table.value_order import value_order_of

_FLOATS = ("float", "double")


def partition_column(text: str | None, field: StructField, length: int) -> pa.Array:
    """Returns a column with the same partition value in every row.

    Raises:
        CorruptLogError: if the string is not a value of the column's type.
    """
    return pa.repeat(partition_value(text, field), length)


def partition_value(text: str | None, field: StructField) -> pa.Scalar:
    """Converts a partition value of the log to Arrow.

    Raises:
        CorruptLogError: if the string is not a value of the column's type.
    """
    target = arrow_type(field.type)
    if not text:
        return pa.scalar(None, target)
    try:
        return _typed(text, field.type, target)
    except (pa.ArrowException, ValueError) as error:
        raise CorruptLogError(
            f"`{text}` is not a value of the partition column `{field.name}` of type {field.type.sql_name}"
        ) from error


def _typed(text: str, data_type: DataType, target: pa.DataType) -> pa.Scalar:
    name = getattr(data_type, "name", "")
    if name == "string":
        return pa.scalar(text)
    if name == "binary":
        return pa.scalar(text.encode(), target)
    if name in _FLOATS:
        return pa.array([text.strip()]).cast(target)[0]
    order = value_order_of(data_type)
    form = None if order is None else order.from_texts(pa.array([text.strip()]))[0]
    if form is None or not form.is_valid:
        raise ValueError(text)
    return _of_form(form, target)


def _of_form(form: pa.Scalar, target: pa.DataType) -> pa.Scalar:
    """Converts a value of a `ValueOrder` to the column's own type."""
    forms = pa.array([form.as_py()], form.type)
    if pa.types.is_timestamp(target):
        return forms.cast(pa.timestamp("us")).view(target)[0]
    if pa.types.is_date(target):
        return forms.cast(pa.int32()).view(target)[0]
    return forms.cast(target)[0]
