"""Makes DataFrames: of rows of this process, of many columns with few calls to Spark, and of rows computed once.

Each executor keeps the rows that it computed. If an executor is lost, the job that reads its rows fails, and the
statement is run again: a second computation might return different rows.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final, TypeVar

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Observation, SparkSession, types
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from dbt.adapters.silt.engine import spark_seams
from dbt.adapters.silt.engine.commands.spark import session_settings
from dbt.adapters.silt.engine.kernel.errors import InvalidArgumentError
from dbt.adapters.silt.engine.kernel.identifiers import quote

T = TypeVar("T")
Mapped = Callable[[], AbstractContextManager[None]]
"""Creates a context that turns Spark's failures into errors of this engine."""

_MAPPED: Final = "_silt_mapped"
_MADE: Final = frozenset(("DataFrame", "GroupedData", "DataFrameWriter", "DataFrameWriterV2"))
"""The classes that DataFrame methods return and Spark computes later; Spark Connect has classes of the same names."""

_MANY: Final = 100
_OWN: Final = "__silt_"
_MADE_NAME: Final = f"{_OWN}made_"


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
    """Returns a DataFrame of the rows; the table may be empty.

    Times without a zone have the type `spark.sql.timestampType`. PySpark's own conversion to `timestamp` knows only
    Arrow's time zones, and refuses times that are missing or ambiguous in a zone: Spark's cast converts them.
    """
    schema = from_arrow_schema(rows.schema, prefer_timestamp_ntz=True)
    if rows.num_rows:
        return _with_default_times(spark.createDataFrame(rows, schema))
    # Spark Connect reads no types from a table without rows.
    nulls = pa.Table.from_arrays([pa.nulls(1, each.type) for each in rows.schema], names=rows.column_names)
    return _with_default_times(spark.createDataFrame(nulls, schema).limit(0))


def _with_default_times(frame: DataFrame) -> DataFrame:
    kinds = [(each.name, each.dataType, with_zone(each.dataType)) for each in frame.schema.fields]
    if all(kind == zoned for _, kind, zoned in kinds):
        return frame
    if frame.sparkSession.conf.get("spark.sql.timestampType") == "TIMESTAMP_NTZ":
        return frame
    return frame.select(*(F.col(quote(name)).cast(zoned).alias(name) for name, _, zoned in kinds))


def with_zone(kind: types.DataType) -> types.DataType:
    """Returns the type with `timestamp` for each `timestamp_ntz` in it."""
    match kind:
        case types.TimestampNTZType():
            return types.TimestampType()
        case types.ArrayType():
            return types.ArrayType(with_zone(kind.elementType), kind.containsNull)
        case types.MapType():
            return types.MapType(with_zone(kind.keyType), with_zone(kind.valueType), kind.valueContainsNull)
        case types.StructType():
            return types.StructType(
                [types.StructField(each.name, with_zone(each.dataType), each.nullable) for each in kind.fields]
            )
    return kind


def column(path: Sequence[str]) -> Column:
    """Returns a column by its path of names."""
    return F.col(".".join(map(quote, path)))


def in_order(rows: DataFrame, columns: Sequence[Sequence[str]]) -> DataFrame:
    """Returns the rows, sorted by these columns within each of Spark's partitions; without columns, as they are."""
    return rows.sortWithinPartitions(*map(column, columns)) if columns else rows


def computed_once(rows: DataFrame, eager: bool = True) -> DataFrame:
    """Returns the rows, which Spark keeps once computed; if kept rows are lost, the job that reads them fails.

    Args:
        eager: whether the rows are computed now.
    """
    session = rows.sparkSession
    if isinstance(session, SparkSession):
        return rows.localCheckpoint(eager)
    with spark_seams.active_session(session):
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


def select(frame: DataFrame, columns: Mapping[str, str | Column]) -> DataFrame:
    """Returns a frame with these columns in this order.

    Args:
        columns: by name, SQL text, which takes one call, or a column of functions, which has taken several. An
            unchanged column of a frame with many columns takes no call.
    """
    if len(columns) >= _MANY:
        in_place = _in_place(frame, columns)
        if in_place is not None:
            return in_place
    texts = {name: value for name, value in columns.items() if isinstance(value, str)}
    if len(texts) == len(columns):
        return frame.selectExpr(*(_named(text, name) for name, text in texts.items()))
    if len(texts) < _MANY:
        return frame.select(*(_column(value).alias(name) for name, value in columns.items()))
    # Spark takes columns or texts in one call, not both.
    made = {name: f"{_MADE_NAME}{position}" for position, name in enumerate(columns) if name not in texts}
    both = frame.withColumns({made[name]: value for name, value in columns.items() if isinstance(value, Column)})
    return both.selectExpr(*(_named(texts.get(name, made.get(name, name)), name) for name in columns))


def with_columns(frame: DataFrame, columns: Mapping[str, str | Column]) -> DataFrame:
    """Returns the frame with some columns replaced, by their exact names."""
    if len(columns) < _MANY:
        return frame.withColumns({name: _column(value) for name, value in columns.items()})
    return select(frame, {**{name: quote(name) for name in frame.columns}, **columns})


def _in_place(frame: DataFrame, columns: Mapping[str, str | Column]) -> DataFrame | None:
    """Changes the frame without a call for unchanged columns, or returns None if that cannot give these columns.

    `withColumns` keeps the order of the frame, and `drop` takes names: only the engine's names are certainly unique.
    """
    present = frame.columns
    gone = [name for name in present if name not in columns]
    made = {name: value for name, value in columns.items() if not _is_unchanged(name, value)}
    after = [name for name in present if name in columns] + [name for name in made if name not in present]
    is_few = len(made) < _MANY and all(name.startswith(_OWN) for name in gone)
    if not is_few or after != list(columns):
        return None
    changed = frame.withColumns({name: _column(value) for name, value in made.items()}) if made else frame
    return changed.drop(*gone)


def _is_unchanged(name: str, value: str | Column) -> bool:
    return isinstance(value, str) and (value == quote(name) or (value == name and name.startswith(_OWN)))


def _column(value: str | Column) -> Column:
    return F.expr(value) if isinstance(value, str) else value


def _named(text: str, name: str) -> str:
    quoted = quote(name)
    return text if text == quoted else f"{text} as {quoted}"
