"""Shared by the tests of MERGE: short constructors, and a plain-Python definition of the statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame

from dbt.adapters.silt.engine.commands.merge import merge as command
from dbt.adapters.silt.engine.commands.merge.plan import KeyEquality, MergePlan
from dbt.adapters.silt.engine.commands.rows.file_rows import Limits
from dbt.adapters.silt.engine.commands.target import Outcome, Target, WriteSettings
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.expressions import Column
from dbt.adapters.silt.engine.sql.ast import (
    Assignment,
    DeleteRow,
    InsertAll,
    InsertValues,
    MatchKind,
    MergeAction,
    MergeClause,
    UpdateAll,
    UpdateSet,
)
from tests.unit.engine.commands.spark_tables import PLAIN, Tables

STEP_BY_STEP = Limits(direct=-1, at_once=-1, single_task=-1, single_task_rows=-1)
"""Every step that rules files out is taken, even for a small table."""
JOINED_WHOLE = replace(STEP_BY_STEP, broadcast=-1)
"""The same, with a source that is too large to be broadcast to every task."""

UPSERT = (MergeClause(MatchKind.MATCHED, UpdateAll()), MergeClause(MatchKind.NOT_MATCHED, InsertAll()))
BY_ID = (KeyEquality(Column.of("id"), "s.id"),)

Row = Mapping[str, Any]


def plan(condition: str, *clauses: MergeClause, **more: Any) -> MergePlan:
    return MergePlan("t", "s", condition, clauses, **more)


def sets(**values: str) -> UpdateSet:
    return UpdateSet(tuple(Assignment((name,), value) for name, value in values.items()))


def inserts(**values: str) -> InsertValues:
    return InsertValues(tuple((name,) for name in values), tuple(values.values()))


def merge(
    tables: Tables,
    target: DeltaLog | Target,
    source: str | DataFrame,
    merge_plan: MergePlan,
    settings: WriteSettings = PLAIN,
    limits: Limits | None = None,
) -> Outcome:
    pinned = tables.target(target) if isinstance(target, DeltaLog) else target
    rows = tables.spark.sql(source) if isinstance(source, str) else source
    return command.merge(tables.spark, pinned, rows, merge_plan, settings, limits)


@dataclass(frozen=True)
class When:
    """A clause in SQL and in Python. `truth` returns SQL's three outcomes; `result` the new row, or None for a
    deletion.
    """

    match: MatchKind
    action: MergeAction
    condition: str | None
    truth: Callable[[Row | None, Row | None], bool | None]
    result: Callable[[Row | None, Row | None], Row | None]

    @property
    def clause(self) -> MergeClause:
        return MergeClause(self.match, self.action, self.condition)


class Ambiguous(Exception):
    """More than one row of the source matches a target row that would be changed."""


def merged(
    target: Sequence[Row], source: Sequence[Row], on: Callable[[Row, Row], bool | None], whens: Sequence[When]
) -> list[Row]:
    """Returns the rows of a table after a MERGE, by the definition of the statement, row by row."""
    matched, not_matched, by_source = ([w for w in whens if w.match is match] for match in MatchKind)
    always_deletes = [(type(w.action), w.condition) for w in matched] == [(DeleteRow, None)]
    rows: list[Row] = []
    for row in target:
        matches = [each for each in source if on(row, each) is True]
        if not matches:
            rows += _applied(by_source, row, None, [row])
            continue
        taking = [each for each in matches if _taken(matched, row, each) is not None]
        if len(taking) > 1 and not always_deletes:
            raise Ambiguous
        rows += _applied(matched, row, (taking or matches)[0], [row])
    for each in source:
        if not any(on(row, each) is True for row in target):
            rows += _applied(not_matched, None, each, [])
    return rows


def _taken(whens: Sequence[When], row: Row | None, other: Row | None) -> When | None:
    return next((when for when in whens if when.truth(row, other) is True), None)


def _applied(whens: Sequence[When], row: Row | None, other: Row | None, unchanged: list[Row]) -> list[Row]:
    when = _taken(whens, row, other)
    if when is None:
        return unchanged
    result = when.result(row, other)
    return [] if result is None else [result]


__all__ = [
    "BY_ID",
    "STEP_BY_STEP",
    "UPSERT",
    "Ambiguous",
    "When",
    "inserts",
    "merge",
    "merged",
    "plan",
    "sets",
]
