"""Computes rows once, however often they are read.

Each executor keeps the rows that it computed. If an executor is lost, the job that reads its rows fails, and the
statement is run again: a second computation might return different rows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, Observation, SparkSession

from dbt.adapters.silt.engine.commands.spark import session_settings


def computed_once(rows: DataFrame, eager: bool = True) -> DataFrame:
    """Returns the rows, which Spark keeps once computed; if kept rows are lost, the job that reads them fails.

    Args:
        eager: whether the rows are computed now.
    """
    session = rows.sparkSession
    if isinstance(session, SparkSession):
        return rows.localCheckpoint(eager)
    with _active(session):
        return rows.localCheckpoint(eager)


def computed_once_and_observed(rows: DataFrame, metrics: Sequence[Column]) -> tuple[DataFrame, Mapping[str, Any]]:
    """Computes and keeps the rows now, and returns them with aggregates over them.

    The aggregates are observed on the pass that computes the rows if Spark runs each task once. A repeated task finds
    the rows that the first run kept, and observes nothing (SPARK-41497): if Spark may repeat tasks, the aggregates are
    computed from the kept rows.

    Args:
        metrics: aggregates, each with a name.
    """
    if not session_settings.runs_tasks_once(rows.sparkSession):
        kept = computed_once(rows)
        return kept, kept.agg(*metrics).collect()[0].asDict()
    observation = Observation()
    return computed_once(rows.observe(observation, *metrics)), observation.get


@contextlib.contextmanager
def _active(session: Any) -> Iterator[None]:
    """Makes a Spark Connect session the active session of this thread.

    PySpark's client assigns rows that it keeps on the server to the thread's active session, whichever session
    requested them; only the requesting session can read them. PySpark has no public method to set the active session.
    """
    thread = type(session)._active_session
    before = getattr(thread, "session", None)
    thread.session = session
    try:
        yield
    finally:
        thread.session = before
