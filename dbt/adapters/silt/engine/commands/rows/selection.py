"""Selects the rows of a DELETE or UPDATE, with the sizes up to which searching their files does not pay off."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.silt.engine.commands.reading import scan
from dbt.adapters.silt.engine.commands.target import Target
from dbt.adapters.silt.engine.commands.writing import conditions
from dbt.adapters.silt.engine.kernel.table.expressions import Expression


@dataclass(frozen=True)
class Rows:
    """The rows that a DELETE or an UPDATE selects.

    Args:
        alias: the qualifier of the table's columns in `condition`.
        condition: the SQL of WHERE, its tables pinned; None for all rows.
        predicate: the predicate that the condition implies; UNKNOWN if it cannot be derived.
    """

    alias: str
    condition: str | None
    predicate: Expression


@dataclass(frozen=True)
class Limits:
    """The limits up to which a cheaper plan is used: sizes of the candidate files in bytes, unless stated otherwise.

    Args:
        direct: whether a MERGE joins its source directly; otherwise it first makes the source stable and finds the
            range of its keys.
        at_once: all candidates are rewritten, without a prior job that finds the files with rows to change.
        single_task: a single task joins and writes them.
        single_task_rows: rows of a stable source up to which the same holds.
        broadcast: the maximum size, in bytes, of a stable source that is broadcast.
    """

    direct: int = 8 << 20
    at_once: int = 16 << 20
    single_task: int = 2 << 20
    single_task_rows: int = 20_000
    broadcast: int = 64 << 20


def check_condition(spark: SparkSession, target: Target, rows: Rows) -> None:
    """Checks that the condition is boolean, or NULL and therefore never true.

    Raises:
        InvalidStatementError: if the condition has another type.
    """
    if rows.condition is not None:
        conditions.checked(
            rows.condition, "the condition of WHERE", lambda: no_rows(spark, target).alias(rows.alias), target.name
        )


def no_rows(spark: SparkSession, target: Target) -> DataFrame:
    """Returns the rows of no file of the table: they have its columns, and need no job."""
    return scan.read(spark, target.log, target.snapshot, target.snapshot.files.slice(0, 0))
