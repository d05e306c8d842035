"""Data skipping: finds the files that a predicate excludes, and the part of a condition that excludes them."""

from __future__ import annotations

import bisect
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.silt.engine.kernel.files.bounds import Bounds, column_bounds
from dbt.adapters.silt.engine.kernel.files.table_files import Read
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table import active_files, expressions
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, Metadata
from dbt.adapters.silt.engine.kernel.table.expressions import (
    TRUE,
    And,
    Column,
    Comparison,
    Constant,
    Expression,
    In,
    IsNotNull,
    IsNull,
    Not,
    Or,
    StartsWith,
    Value,
    columns,
)
from dbt.adapters.silt.engine.kernel.table.value_order import Strings

ROWS_MIGHT_MATCH: Final = True
ROWS_CANNOT_MATCH: Final = False

# A longer IN list is searched for each file instead of being compared value by value.
_FEW_VALUES = 16
_YES, _NO = pa.scalar(True), pa.scalar(False)


def prune(snapshot: Snapshot, predicate: Expression, files: pa.Table | None = None) -> pa.Table:
    """Returns the files that may have a row for which the predicate is TRUE.

    Args:
        files: the files to choose from, rows of `snapshot.files`; by default all.
    """
    if isinstance(predicate, Constant):
        if True not in predicate.possible:
            return active_files.FILES.empty_table()
        return snapshot.files if files is None else files
    if files is not None:
        return files.filter(_may_match(files, snapshot.metadata, predicate))
    active = snapshot.active
    early = _may_match(active.early, snapshot.metadata, predicate, active.early_statistics)
    return active.chosen(early, _may_match(active.late, snapshot.metadata, predicate))


def fully_matched(snapshot: Snapshot, predicate: Expression, files: pa.Table | None = None) -> pa.BooleanArray:
    """Returns for each file whether the predicate is certainly TRUE for all of its rows."""
    candidates = snapshot.files if files is None else files
    outcomes = _outcomes(candidates, snapshot.metadata, predicate)
    return _as_array(pc.invert(pc.or_(outcomes.false, outcomes.null)), candidates.num_rows)


def might_match(adds: Sequence[AddFile], metadata: Metadata, predicate: Expression) -> list[bool]:
    """Returns for each file ROWS_MIGHT_MATCH or ROWS_CANNOT_MATCH."""
    answers: list[bool] = _may_match(active_files.files_table(adds), metadata, predicate).to_pylist()
    return answers


@dataclass(frozen=True)
class _Outcomes:
    """The possible results of a condition for rows of each file: Boolean arrays, or a scalar for all files."""

    true: Any
    false: Any
    null: Any


def _may_match(files: pa.Table, metadata: Metadata, predicate: Expression, read: Read | None = None) -> pa.BooleanArray:
    return _as_array(_outcomes(files, metadata, predicate, read).true, files.num_rows)


def _outcomes(files: pa.Table, metadata: Metadata, predicate: Expression, read: Read | None = None) -> _Outcomes:
    known = column_bounds(files, metadata, expressions.columns(predicate), read)
    return _judge(predicate, known)


def _judge(predicate: Expression, known: Mapping[Column, Bounds]) -> _Outcomes:
    match predicate:
        case Constant(possible):
            return _constant(possible)
        case And(parts):
            return functools.reduce(_and, (_judge(part, known) for part in parts), _constant({True}))
        case Or(parts):
            negated = (_not(_judge(part, known)) for part in parts)
            return _not(functools.reduce(_and, negated, _constant({True})))
        case Not(part):
            return _not(_judge(part, known))
    bounds = known.get(predicate.column)
    if bounds is None:
        return _UNKNOWN
    match predicate:
        case IsNull():
            return _Outcomes(bounds.may_be_null, bounds.may_be_value, _NO)
        case IsNotNull():
            return _Outcomes(bounds.may_be_value, bounds.may_be_null, _NO)
        case Comparison(operator, _, value):
            return _compared(bounds, operator, value)
        case In():
            return _in_list(predicate, known)
        case StartsWith(_, prefix):
            return _prefixed(bounds, prefix)


def _constant(possible: Any) -> _Outcomes:
    return _Outcomes(*(pa.scalar(outcome in possible) for outcome in (True, False, None)))


_UNKNOWN = _constant({True, False, None})


def _not(part: _Outcomes) -> _Outcomes:
    return _Outcomes(part.false, part.true, part.null)


def _and(left: _Outcomes, right: _Outcomes) -> _Outcomes:
    return _Outcomes(
        true=pc.and_(left.true, right.true),
        false=pc.or_(left.false, right.false),
        null=pc.or_(pc.and_(left.null, pc.or_(right.true, right.null)), pc.and_(left.true, right.null)),
    )


def _compared(bounds: Bounds, operator: str, value: Value | None) -> _Outcomes:
    if value is None:
        is_null = _Outcomes(bounds.may_be_null, bounds.may_be_value, _NO)
        return is_null if operator == "<=>" else _constant({None})
    order = _Order.of(bounds, value)
    if order is None:
        return _UNKNOWN
    less, equal, greater = order.less, order.equal, order.greater
    unequal = pc.or_(less, greater)
    if operator == "<=>":
        return _Outcomes(equal, pc.or_(unequal, bounds.may_be_null), _NO)
    true, false = {
        "=": (equal, unequal),
        "!=": (unequal, equal),
        "<": (less, pc.or_(equal, greater)),
        "<=": (pc.or_(less, equal), greater),
        ">": (greater, pc.or_(less, equal)),
        ">=": (pc.or_(greater, equal), less),
    }[operator]
    return _Outcomes(true, false, bounds.may_be_null)


@dataclass(frozen=True)
class _Order:
    """Whether some value of the column may be less than, equal to, or greater than a given value."""

    less: Any
    equal: Any
    greater: Any

    @classmethod
    def of(cls, bounds: Bounds, value: Value) -> _Order | None:
        """Compares a value with the bounds; None if it is not of the column's type, or the column is not ordered."""
        encoded = None if bounds.order is None else bounds.order.encode(value)
        if encoded is None or bounds.order is None:
            return None
        scalar = pa.scalar(encoded, bounds.order.form)
        if expressions.is_nan(encoded):
            # NaN is above every number; a known maximum is a number.
            return cls(bounds.may_be_value, _may(bounds, pc.is_null(bounds.maximum)), _NO)
        not_above = _unless_known(pc.less_equal, bounds.minimum, scalar)
        not_below = _unless_known(pc.greater_equal, bounds.maximum, scalar)
        return cls(
            less=_may(bounds, _unless_known(pc.less, bounds.minimum, scalar)),
            equal=_may(bounds, pc.and_(not_above, not_below)),
            greater=_may(bounds, _unless_known(pc.greater, bounds.maximum, scalar)),
        )


def _in_list(predicate: In, known: Mapping[Column, Bounds]) -> _Outcomes:
    column, values = predicate.column, predicate.values
    if len(values) <= _FEW_VALUES:
        return _judge(Or(tuple(Comparison("=", column, value) for value in values)), known)
    bounds = known[column]
    given = [value for value in values if value is not None]
    encoded = [None if bounds.order is None else bounds.order.encode(value) for value in given]
    if any(each is None for each in encoded):
        return _UNKNOWN
    true = _holds_one_of(bounds, sorted(each for each in encoded if not expressions.is_nan(each)))
    if any(map(expressions.is_nan, encoded)):
        true = pc.or_(true, pc.is_null(bounds.maximum))
    has_null = len(given) < len(values)
    null = pc.or_(bounds.may_be_null, bounds.may_be_value) if has_null else bounds.may_be_null
    return _Outcomes(_may(bounds, true), bounds.may_be_value, null)


def _holds_one_of(bounds: Bounds, ordered: Sequence[Any]) -> pa.BooleanArray:
    """Returns for each file whether any of these values, in ascending order, lies within its bounds."""
    answers = []
    for low, high in zip(bounds.minimum.to_pylist(), bounds.maximum.to_pylist(), strict=True):
        start = 0 if low is None else bisect.bisect_left(ordered, low)
        end = len(ordered) if high is None else bisect.bisect_right(ordered, high)
        answers.append(start < end)
    return pa.array(answers, pa.bool_())


def _prefixed(bounds: Bounds, prefix: str) -> _Outcomes:
    if not isinstance(bounds.order, Strings):
        return _UNKNOWN
    scalar = pa.scalar(prefix)
    low_has_it = pc.fill_null(pc.starts_with(bounds.minimum, prefix), False)
    high_has_it = pc.fill_null(pc.starts_with(bounds.maximum, prefix), False)
    low_is_below = _unless_known(pc.less_equal, bounds.minimum, scalar)
    # The strings with this prefix form an interval that begins with the prefix itself.
    true = pc.and_(pc.or_(low_is_below, low_has_it), _unless_known(pc.greater_equal, bounds.maximum, scalar))
    false = pc.invert(pc.and_(low_has_it, high_has_it))
    return _Outcomes(_may(bounds, true), _may(bounds, false), bounds.may_be_null)


def _unless_known(compare: Callable[[Any, Any], Any], bound: pa.Array, value: pa.Scalar) -> Any:
    """Returns the comparison, or true if the bound is unknown."""
    return pc.fill_null(compare(bound, value), True)


def _may(bounds: Bounds, condition: Any) -> Any:
    return pc.and_(condition, bounds.may_be_value)


def _as_array(answers: Any, length: int) -> pa.BooleanArray:
    return pa.repeat(answers, length) if isinstance(answers, pa.Scalar) else answers


class SkippedBy(Enum):
    """The kind of information in the log that rules a file out."""

    PARTITION_VALUES = "partition values"
    STATISTICS = "statistics"


@dataclass(frozen=True)
class SkipReason:
    """Files in which no row fulfils a part of a condition.

    Attributes:
        part: the part of the condition; parts are applied in order.
        files: the files that it excludes and no earlier part excludes; rows of `Snapshot.files`.
    """

    part: Expression
    by: SkippedBy
    files: pa.Table


@dataclass(frozen=True)
class Skipped:
    """The files that must be read for a condition, and the reasons why other files are skipped."""

    reasons: tuple[SkipReason, ...]
    read: pa.Table


def skipped(snapshot: Snapshot, predicate: Expression) -> Skipped:
    """Returns the snapshot's files that `skipping.prune` keeps, and the reasons for the files that it drops."""
    left, reasons = snapshot.files, []
    for part in _parts(predicate):
        kept = prune(snapshot, part, left)
        if kept.num_rows < left.num_rows:
            is_kept = pc.is_in(left["path"], value_set=kept["path"].combine_chunks())
            reasons.append(SkipReason(part, _skipped_by(part, snapshot), left.filter(pc.invert(is_kept))))
        left = kept
    return Skipped(tuple(reasons), left)


def _parts(predicate: Expression) -> Iterator[Expression]:
    if isinstance(predicate, And):
        for part in predicate.parts:
            yield from _parts(part)
    elif predicate != TRUE:
        yield predicate


def _skipped_by(part: Expression, snapshot: Snapshot) -> SkippedBy:
    partitioning = {name.lower() for name in snapshot.partition_columns}
    named = {column.parts[0].lower() for column in columns(part)}
    return SkippedBy.PARTITION_VALUES if named <= partitioning else SkippedBy.STATISTICS
