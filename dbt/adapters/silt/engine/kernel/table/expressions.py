"""Predicates over the columns of a table: frozen trees, and their outcome for a row.

A tree can express less than SQL: it compares a column only with a value of the column's own type, and any other
condition is `UNKNOWN`, which may have any outcome. The outcomes are True, False and None (SQL's NULL).

`evaluate` defines the meaning, row by row, as in Spark SQL: NaN equals itself and is greater than every other number,
-0.0 equals 0.0, strings compare by their UTF-8 bytes. Data skipping must agree with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any, Final, Literal, TypeAlias

Value: TypeAlias = bool | int | float | Decimal | str | bytes | date
"""A value of a column's own type; a timestamp is an aware `datetime`, a timestamp_ntz a naive `datetime`."""

Outcome: TypeAlias = bool | None
Operator: TypeAlias = Literal["=", "<=>", "!=", "<", "<=", ">", ">="]


@dataclass(frozen=True)
class Column:
    """A column, or a field inside struct columns, by its path of names. Case does not matter."""

    parts: tuple[str, ...]

    @classmethod
    def of(cls, *parts: str) -> Column:
        return cls(parts)


@dataclass(frozen=True)
class Constant:
    """A condition that does not depend on a column, with its possible outcomes."""

    possible: frozenset[Outcome]


@dataclass(frozen=True)
class Comparison:
    """`column operator value`; a value of None is SQL's NULL."""

    operator: Operator
    column: Column
    value: Value | None


@dataclass(frozen=True)
class In:
    """`column IN (values)`; a None in `values` is SQL's NULL."""

    column: Column
    values: tuple[Value | None, ...]


@dataclass(frozen=True)
class IsNull:
    column: Column


@dataclass(frozen=True)
class IsNotNull:
    column: Column


@dataclass(frozen=True)
class StartsWith:
    """The condition that a string column begins with a prefix."""

    column: Column
    prefix: str


@dataclass(frozen=True)
class And:
    """The conjunction of the parts; TRUE without parts."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Or:
    """The disjunction of the parts; FALSE without parts."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Not:
    part: Expression


Expression: TypeAlias = Constant | Comparison | In | IsNull | IsNotNull | StartsWith | And | Or | Not

TRUE: Final = Constant(frozenset({True}))
FALSE: Final = Constant(frozenset({False}))
NULL: Final = Constant(frozenset({None}))
UNKNOWN: Final = Constant(frozenset({True, False, None}))
"""May have any outcome: excludes no file and proves nothing about a file."""


def columns(expression: Expression) -> Iterator[Column]:
    """Yields the column of each comparison in the expression, with repetitions."""
    if isinstance(expression, And | Or):
        for part in expression.parts:
            yield from columns(part)
    elif isinstance(expression, Not):
        yield from columns(expression.part)
    elif not isinstance(expression, Constant):
        yield expression.column


def renamed(expression: Expression, names: Mapping[str, str]) -> Expression:
    """Returns the expression about columns with other names.

    Args:
        names: the new name of each top-level column of the expression, by its name in lower case.

    Raises:
        KeyError: if a column has no new name.
    """
    match expression:
        case Constant():
            return expression
        case And(parts) | Or(parts):
            return replace(expression, parts=tuple(renamed(part, names) for part in parts))
        case Not(part):
            return Not(renamed(part, names))
    first, *rest = expression.column.parts
    return replace(expression, column=Column((names[first.lower()], *rest)))


def evaluate(expression: Expression, row: Mapping[str, Any]) -> Outcome:
    """Returns the outcome of the expression for a row.

    Args:
        row: values by column name, in any case; structs are mappings or None.

    Raises:
        ValueError: if the expression holds UNKNOWN.
        KeyError: if the row has no such column.
    """
    match expression:
        case Constant(possible):
            (outcome,) = possible
            return outcome
        case And(parts):
            return _all(evaluate(part, row) for part in parts)
        case Or(parts):
            return _negate(_all(_negate(evaluate(part, row)) for part in parts))
        case Not(part):
            return _negate(evaluate(part, row))
        case IsNull(column):
            return _value(column, row) is None
        case IsNotNull(column):
            return _value(column, row) is not None
        case Comparison("<=>", column, value):
            return _null_safe_equal(_value(column, row), value)
        case Comparison(operator, column, value):
            return _compare(operator, _value(column, row), value)
        case In(column, values):
            equal = (_compare("=", _value(column, row), value) for value in values)
            return _negate(_all(_negate(outcome) for outcome in equal))
        case StartsWith(column, prefix):
            found = _value(column, row)
            return None if found is None else bool(found.startswith(prefix))


def may_be_true(expression: Expression, row: Mapping[str, Any]) -> bool:
    """Returns whether the expression may be true for a row of which at least these values are known."""
    known = {name.lower() for name in row}
    match expression:
        case Constant(possible):
            return True in possible
        case And(parts):
            return all(may_be_true(part, row) for part in parts)
        case Or(parts):
            return any(may_be_true(part, row) for part in parts)
        case Not(part):
            is_known = not _holds_constant(part) and all(column.parts[0].lower() in known for column in columns(part))
            return not is_known or evaluate(expression, row) is True
        case _:
            return expression.column.parts[0].lower() not in known or evaluate(expression, row) is True


def _holds_constant(expression: Expression) -> bool:
    if isinstance(expression, And | Or):
        return any(map(_holds_constant, expression.parts))
    return _holds_constant(expression.part) if isinstance(expression, Not) else isinstance(expression, Constant)


def _value(column: Column, row: Mapping[str, Any]) -> Any:
    found: Any = row
    for part in column.parts:
        if found is None:
            return None
        found = {name.lower(): value for name, value in found.items()}[part.lower()]
    return found


def _all(outcomes: Iterable[Outcome]) -> Outcome:
    seen = set(outcomes)
    if False in seen:
        return False
    return None if None in seen else True


def _negate(outcome: Outcome) -> Outcome:
    return None if outcome is None else not outcome


def _null_safe_equal(left: Any, right: Any) -> bool:
    if left is None or right is None:
        return left is right
    return _compare("=", left, right) is True


def _compare(operator: str, left: Any, right: Any) -> Outcome:
    if left is None or right is None:
        return None
    order = _order(left, right)
    return {
        "=": order == 0,
        "!=": order != 0,
        "<": order < 0,
        "<=": order <= 0,
        ">": order > 0,
        ">=": order >= 0,
    }[operator]


def _order(left: Any, right: Any) -> int:
    left_is_nan, right_is_nan = is_nan(left), is_nan(right)
    if left_is_nan or right_is_nan:
        return int(left_is_nan) - int(right_is_nan)
    return int(left > right) - int(left < right)


def is_nan(value: object) -> bool:
    """Returns whether a value is a floating-point NaN."""
    return isinstance(value, float) and math.isnan(value)
