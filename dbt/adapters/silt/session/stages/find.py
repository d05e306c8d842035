"""Chooses the progress source of a session."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

from dbt.adapters.silt.session.stages import embedded, over_connect
from dbt.adapters.silt.status_lines.line import Stages


def stages_of(session: SparkSession) -> Callable[[], Stages]:
    """Returns a function that reports the progress of a session's statement; registers with a server at once."""
    is_embedded = isinstance(session, SparkSession)  # a session of Spark Connect is of another class
    return embedded.stages_of(session) if is_embedded else over_connect.stages_of(session)
