"""DataFrames of rows of this process, and of the caller: failures become errors of this engine."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.silt.engine.kernel.errors import InvalidArgumentError
from dbt.adapters.silt.engine.kernel.identifiers import quote

T = TypeVar("T")
Mapped = Callable[[], AbstractContextManager[None]]
"""Creates a context that turns Spark's failures into errors of this engine."""

_MAPPED: Final = "_silt_mapped"
_MADE: Final = frozenset(("DataFrame", "GroupedData", "DataFrameWriter", "DataFrameWriterV2"))
"""The classes that DataFrame methods return and Spark computes later; Spark Connect has classes of the same names."""


def mapping(made: T, mapped: Mapped) -> T:
    """Returns the same DataFrame; its methods, and the methods of DataFrames derived from it, now map their errors.

    PySpark decides the class of a DataFrame. The object gets a subclass of that class, so that `isinstance` still
    recognizes it as a DataFrame.

    Args:
        made: a DataFrame, a group of its rows or a writer of its rows.
        mapped: the context that each method enters.
    """
    if _MAPPED not in vars(made):
        vars(made)[_MAPPED] = mapped
        made.__class__ = _mapping_class(type(made))  # type: ignore[arg-type]
    return made


@functools.cache
def _mapping_class(kind: type[Any]) -> type[Any]:
    """Returns a subclass of a class of PySpark that overrides its public methods and properties."""
    names = (name for name in dir(kind) if not name.startswith("_") or name == "__getitem__")
    members = {name: _mapping_member(inspect.getattr_static(kind, name)) for name in names}
    return type(kind.__name__, (kind,), {**members, "__module__": kind.__module__, "__doc__": kind.__doc__})


def _mapping_member(member: Any) -> Any:
    if isinstance(member, property | functools.cached_property):
        return property(lambda self: _called(self, lambda: member.__get__(self, type(self))), doc=member.__doc__)
    if not callable(member):
        return member

    @functools.wraps(member)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _called(self, lambda: member(self, *args, **kwargs))

    return call


def _called(of: Any, call: Callable[[], Any]) -> Any:
    mapped = vars(of)[_MAPPED]
    with mapped():
        return _carried(call(), mapped)


def _carried(given: Any, mapped: Mapped) -> Any:
    """Returns a method's result, whose failures are mapped if it is computed later."""
    if type(given).__name__ in _MADE and type(given).__module__.startswith("pyspark.sql."):
        return mapping(given, mapped)
    if isinstance(given, list) and given and type(given[0]).__name__ == "DataFrame":
        return [_carried(each, mapped) for each in given]
    return _each(given, mapped) if isinstance(given, Iterator) else given


def _each(given: Iterator[T], mapped: Mapped) -> Iterator[T]:
    with mapped():
        yield from given


def check_frame(df: object) -> None:
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
def frame_view(df: DataFrame, name: str) -> Iterator[None]:
    """Creates a temporary view of the rows in their session, and drops it after the block."""
    df.createTempView(quote(name))
    try:
        yield
    finally:
        df.sparkSession.catalog.dropTempView(name)


def frame_of_rows(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Returns a DataFrame of the rows; the table may be empty."""
    if rows.num_rows:
        return spark.createDataFrame(rows)
    # Spark Connect reads no types from a table without rows.
    nulls = pa.Table.from_arrays([pa.nulls(1, each.type) for each in rows.schema], names=rows.column_names)
    return spark.createDataFrame(nulls).limit(0)
