"""Computes rows once, however often they are read.

Each executor keeps those that it computed. Where one is lost with them, the job that reads them fails, and the
statement is run again: computed a second time they might be others.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, Observation, SparkSession

from dbt.adapters.silt.engine.commands.spark import masters


def computed_once(rows: DataFrame, eager: bool = True) -> DataFrame:
    """The rows, kept by Spark from the first time that they are computed; what is lost of them fails the reading job.

    Args:
        eager: whether they are computed now.
    """
    session = rows.sparkSession
    if isinstance(session, SparkSession):
        return rows.localCheckpoint(eager)
    with _active(session):
        return rows.localCheckpoint(eager)


def computed_once_and_observed(rows: DataFrame, metrics: Sequence[Column]) -> tuple[DataFrame, Mapping[str, Any]]:
    """The rows, computed now and kept, and aggregates over them.

    They are observed on the pass that computes the rows where that is sure to see each once. A task that is run again
    finds what the first has kept, and observes nothing (SPARK-41497): where tasks may be, the kept rows are asked.

    Args:
        metrics: aggregates, each with a name.
    """
    if not masters.runs_tasks_once(rows.sparkSession):
        kept = computed_once(rows)
        return kept, kept.agg(*metrics).collect()[0].asDict()
    observation = Observation()
    return computed_once(rows.observe(observation, *metrics)), observation.get


@contextlib.contextmanager
def _active(session: Any) -> Iterator[None]:
    """Makes a Spark Connect session the active one of this thread.

    PySpark's client gives what it keeps on the server to the thread's active session, whichever session asked for it;
    in any other than the asking one it cannot be read. There is no public way to choose the active session.
    """
    thread = type(session)._active_session
    before = getattr(thread, "session", None)
    thread.session = session
    try:
        yield
    finally:
        thread.session = before
