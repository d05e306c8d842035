"""Makes the caller's DataFrame readable in a statement."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame

from dbt.adapters.silt.engine.kernel.errors import InvalidArgumentError
from dbt.adapters.silt.engine.kernel.identifiers import quote


def check(df: object) -> None:
    """Checks that the rows can be written.

    Raises:
        InvalidArgumentError: if the value is not a DataFrame of Spark, or is a streaming DataFrame.
    """
    if not isinstance(df, DataFrame):
        raise InvalidArgumentError(
            f"the rows to write are not a Spark DataFrame, but of type {type(df).__name__}",
            remedy="Create a DataFrame of them with `spark.createDataFrame`",
        )
    if df.isStreaming:
        raise InvalidArgumentError(
            "a stream cannot be written as a whole",
            remedy="Write each of its batches, in the function that you pass to `writeStream.foreachBatch`",
        )


@contextmanager
def view(df: DataFrame, name: str) -> Iterator[None]:
    """Creates a temporary view of the rows in their session, and drops it after the block."""
    df.createTempView(quote(name))
    try:
        yield
    finally:
        df.sparkSession.catalog.dropTempView(name)
