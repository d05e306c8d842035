"""Holds which rows a DELETE or UPDATE chooses, and the size up to which searching their files does not pay."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.commands.reading import scan
from dbt.adapters.silt.engine.commands.target import Target
from dbt.adapters.silt.engine.commands.writing import conditions
from dbt.adapters.silt.engine.kernel.table.expressions import Expression


@dataclass(frozen=True)
class Rows:
    """The rows that a DELETE or an UPDATE is about.

    Args:
        alias: what `condition` may qualify the table's columns by.
        condition: the text of WHERE, its tables pinned; None for all rows.
        predicate: what the condition says of the table's columns; UNKNOWN where it cannot be said.
    """

    alias: str
    condition: str | None
    predicate: Expression


@dataclass(frozen=True)
class Limits:
    """Bytes of candidate files up to which a step that would rule some out is left out.

    Args:
        direct: a MERGE joins its source as it is, without making it stable first to learn the range of its keys.
        at_once: all candidates are rewritten, without a job before that finds those with rows to change.
        single_task: one task joins and writes them.
        single_task_rows: rows of a stable source up to which the same holds.
        broadcast: bytes of a stable source up to which every task has all of it at hand.
    """

    direct: int = 8 << 20
    at_once: int = 16 << 20
    single_task: int = 2 << 20
    single_task_rows: int = 20_000
    broadcast: int = 64 << 20


def check_condition(spark: SparkSession, target: Target, rows: Rows) -> None:
    """Passes if the rows of a table are chosen by a condition that is boolean, or that is NULL and so never true.

    Raises:
        InvalidStatementError: it is of another type.
    """
    if rows.condition is not None:
        nothing = target.snapshot.files.slice(0, 0)
        conditions.checked(
            rows.condition,
            "the condition of WHERE",
            lambda: scan.read(spark, target.log, target.snapshot, nothing).alias(rows.alias),
            target.name,
        )
