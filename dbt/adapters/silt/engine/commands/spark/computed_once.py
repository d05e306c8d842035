"""Computes rows once, however often they are read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, SparkSession


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
