"""Makes a DataFrame of the caller's readable by a statement."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame

from dbt.adapters.silt.engine.kernel.errors import InvalidArgumentError
from dbt.adapters.silt.engine.kernel.identifiers import quote


def check(df: object) -> None:
    """Passes for rows that can be written.

    Raises:
        InvalidArgumentError: it is no DataFrame of Spark's, or that of a stream.
    """
    if not isinstance(df, DataFrame):
        raise InvalidArgumentError(
            f"the rows to write are no DataFrame of Spark's, but of type {type(df).__name__}",
            remedy="Make one of them with `spark.createDataFrame`",
        )
    if df.isStreaming:
        raise InvalidArgumentError(
            "a stream cannot be written as a whole",
            remedy="Write each of its batches, in the function that you give to `writeStream.foreachBatch`",
        )


@contextmanager
def view(df: DataFrame, name: str) -> Iterator[None]:
    """Gives its session a temporary view of its rows for the time of the block."""
    df.createTempView(quote(name))
    try:
        yield
    finally:
        df.sparkSession.catalog.dropTempView(name)
