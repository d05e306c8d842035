"""Evaluates predicates on Arrow columns, row by row, with the three outcomes of SQL.

The meaning is defined by `kernel.table.expressions.evaluate`: NaN equals itself and is greater than every other number,
-0.0 equals 0.0, strings compare by their UTF-8 bytes, and null compares with nothing.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.silt.engine.kernel.errors import InternalError
from dbt.adapters.silt.engine.kernel.table import expressions

_FEW_VALUES: Final = 16
_COMPARE: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
# The outcomes of a comparison with NaN: for numbers other than NaN, and for NaN.
_WITH_NAN: Final[Mapping[str, tuple[bool, bool]]] = {
    "=": (False, True),
    "!=": (True, False),
    "<": (True, False),
    "<=": (True, True),
    ">": (False, False),
    ">=": (False, True),
}


def is_exact(expression: expressions.Expression) -> bool:
    """Returns whether every part of the expression has a single outcome for each row."""
    match expression:
        case expressions.Constant(possible):
            return len(possible) == 1
        case expressions.And(parts) | expressions.Or(parts):
            return all(map(is_exact, parts))
        case expressions.Not(part):
            return is_exact(part)
    return True


def outcomes(expression: expressions.Expression, batch: pa.RecordBatch) -> pa.BooleanArray:
    """Returns the outcome of the expression for each row; null is SQL's NULL.

    Args:
        batch: rows with the columns that the expression names, in any case.

    Raises:
        InternalError: if the expression is not exact, or the batch lacks a column.
    """
    match expression:
        case expressions.Constant():
            return pa.repeat(_only(expression), batch.num_rows)
        case expressions.And(parts):
            found = (outcomes(part, batch) for part in parts)
            return functools.reduce(pc.and_kleene, found, pa.repeat(True, batch.num_rows))
        case expressions.Or(parts):
            found = (outcomes(part, batch) for part in parts)
            return functools.reduce(pc.or_kleene, found, pa.repeat(False, batch.num_rows))
        case expressions.Not(part):
            return pc.invert(outcomes(part, batch))
    array = _column(expression.column, batch)
    match expression:
        case expressions.IsNull():
            return pc.is_null(array)
        case expressions.IsNotNull():
            return pc.is_valid(array)
        case expressions.Comparison("<=>", _, value):
            return pc.is_null(array) if value is None else pc.fill_null(_compared("=", array, value), False)
        case expressions.Comparison(operator, _, value):
            return _compared(operator, array, value)
        case expressions.In(_, values):
            return _among(array, values)
        case expressions.StartsWith(_, prefix):
            return pc.starts_with(array, prefix)


def _only(constant: expressions.Constant) -> pa.Scalar:
    if len(constant.possible) != 1:
        raise InternalError("a condition that may have several outcomes cannot filter rows")
    (outcome,) = constant.possible
    return pa.scalar(outcome, pa.bool_())


def _column(column: expressions.Column, batch: pa.RecordBatch) -> pa.Array:
    """Returns a column or a member of structs, null if a struct around it is null."""
    first, *inner = column.parts
    array = batch.column(_index_of(first, batch.schema.names))
    for part in inner:
        array = pc.struct_field(array, _index_of(part, [field.name for field in array.type]))
    return array


def _index_of(name: str, names: Sequence[str]) -> int:
    for at, each in enumerate(names):
        if each.lower() == name.lower():
            return at
    raise InternalError(f"the column `{name}` to compare does not exist")


def _compared(operator: str, array: pa.Array, value: expressions.Value | None) -> pa.BooleanArray:
    if value is None:
        return pa.nulls(len(array), pa.bool_())
    compare = _COMPARE[operator]
    if not pa.types.is_floating(array.type):
        return compare(_wide(array), _scalar(value, array.type))
    doubles = array.cast(pa.float64())
    assert isinstance(value, int | float)
    numbers, nans = _WITH_NAN[operator]
    if math.isnan(value):
        return pc.if_else(pc.is_nan(doubles), nans, numbers)
    # NaN is above every number.
    return pc.if_else(pc.is_nan(doubles), operator in ("!=", ">", ">="), compare(doubles, pa.scalar(float(value))))


def _wide(array: pa.Array) -> pa.Array:
    """Casts integers and Booleans to a type that holds every value that they are compared with."""
    if pa.types.is_integer(array.type):
        return array.cast(pa.int64())
    return array.cast(pa.int8()) if pa.types.is_boolean(array.type) else array


def _scalar(value: expressions.Value, column: pa.DataType) -> pa.Scalar:
    if pa.types.is_integer(column):
        return pa.scalar(value, pa.int64())
    if pa.types.is_boolean(column):
        return pa.scalar(int(bool(value)), pa.int8())
    if pa.types.is_decimal(column):
        assert isinstance(value, int | Decimal)
        return pa.scalar(_plain(Decimal(value)))
    return pa.scalar(value, column)


def _plain(number: Decimal) -> Decimal:
    """Returns the number without a positive exponent, which Arrow would interpret as a negative scale."""
    exponent = number.as_tuple().exponent
    return Decimal(format(number, "f")) if isinstance(exponent, int) and exponent > 0 else number


def _among(array: pa.Array, values: Sequence[expressions.Value | None]) -> pa.BooleanArray:
    given = [value for value in values if value is not None]
    if len(given) > _FEW_VALUES and not (pa.types.is_floating(array.type) or pa.types.is_decimal(array.type)):
        choices = pa.array([_scalar(value, array.type).as_py() for value in given], _wide(array[:0]).type)
        found = pc.if_else(pc.is_null(array), None, pc.is_in(_wide(array), value_set=choices))
    else:
        found = functools.reduce(pc.or_kleene, (_compared("=", array, value) for value in given), _false(array))
    # A value that equals no listed value is NULL if null is listed.
    return pc.or_kleene(found, pa.scalar(None, pa.bool_())) if None in values else found


def _false(array: pa.Array) -> pa.BooleanArray:
    return pa.repeat(False, len(array))
