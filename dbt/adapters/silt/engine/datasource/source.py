"""The data source `silt` for PySpark.

    silt.DataSource.register(spark)
    spark.read.format("silt").load("/data/warehouse/main/orders")
    df.write.format("silt").mode("append").option("warehouse", "/data/warehouse").save("main.orders")

Spark creates objects of this class in separate processes: one returns the schema, another plans a read or a write, and
a third commits. They share only pickled values.
"""

from __future__ import annotations

import sys
from typing import ClassVar
from weakref import WeakSet

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import datasource as api
from pyspark.sql.types import StructType

from dbt.adapters.silt.engine.arrow.read import condition
from dbt.adapters.silt.engine.arrow.tables import TableLocation
from dbt.adapters.silt.engine.datasource import options
from dbt.adapters.silt.engine.datasource.options import Options, feed_range, snapshot_read
from dbt.adapters.silt.engine.datasource.pushed_filters import is_pushing
from dbt.adapters.silt.engine.datasource.reader import (
    FeedReader,
    FeedScan,
    FilteringReader,
    TableReader,
    chosen,
    selected,
    shown,
)
from dbt.adapters.silt.engine.datasource.stream_reader import StreamReader, check
from dbt.adapters.silt.engine.datasource.write_plan import Asked
from dbt.adapters.silt.engine.datasource.writers import StreamWriter, TableWriter
from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.scan.change_feed import FEED_COLUMNS, changed_files

_PROBE = "__silt_probe"
"""The option of a read that only finds out whether Spark's Python can load this module."""
_WRONG_PYTHON = ("No module named", "PYTHON_VERSION_MISMATCH", "Cannot run program")


class DataSource(api.DataSource):
    """Tables as a source and a sink of DataFrames and streams.

    Attributes:
        pinned: newest version when the schema was requested; later reads use its rows.
    """

    pinned: int | None = None
    _working: ClassVar[WeakSet[SparkSession]] = WeakSet()

    @classmethod
    def name(cls) -> str:
        return "silt"

    @classmethod
    def register(cls, spark: SparkSession) -> None:
        """Registers `format("silt")` in a session; does nothing if it is registered.

        Raises:
            InvalidSettingError: if the Python that Spark starts is not one in which this package is installed.
        """
        # Spark looks the name up in the active session; this call makes `spark` the active session.
        spark.createDataFrame([], "made long")
        try:
            spark.dataSource.register(cls)
        except PySparkException as error:
            if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
                raise
        if spark not in cls._working:
            _check_python(spark)
            cls._working.add(spark)

    def schema(self) -> StructType:
        """Returns the columns of the table.

        The change feed adds `_change_type`, `_commit_version` and `_commit_timestamp`.
        """
        if _PROBE in self.options:
            return StructType()
        given = Options.of(self.options)
        given.check(*options.READ, *options.STREAM_READ)
        log = given.table.log()
        if given.flag("readChangeFeed"):
            newest = log.snapshot()
            self.pinned = newest.version
            end = feed_range(log, given, newest).end if any(map(given.text, options.ENDING)) else newest
            return shown(end.schema.add(*FEED_COLUMNS))
        snapshot = snapshot_read(log, given)
        self.pinned = snapshot.version
        return shown(selected(snapshot.schema, given.names("columns"), log.name))

    def reader(self, schema: StructType) -> api.DataSourceReader:
        """Plans a read of the columns of `schema`."""
        given = Options.of(self.options)
        given.check(*options.READ)
        source = given.table
        log = source.log()
        location = TableLocation.of(source, log.store)
        if given.flag("readChangeFeed"):
            return self._feed_reader(given, log, location)
        snapshot = snapshot_read(log, given) if self.pinned is None else log.snapshot_at(self.pinned)
        names = chosen(snapshot.schema, schema, log.name)
        rows = condition(given.text("where"), snapshot, source.name, given.time_zone)
        return (FilteringReader if is_pushing() else TableReader)(snapshot, location, names, rows)

    def writer(self, schema: StructType, overwrite: bool) -> api.DataSourceWriter:
        """Plans a write of rows with these columns."""
        given = Options.of(self.options)
        given.check(*options.WRITE)
        return TableWriter(Asked(given, overwrite), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> api.DataSourceStreamWriter:
        """Plans a batch of a stream with these columns."""
        given = Options.of(self.options)
        given.check(*options.STREAM_WRITE)
        return StreamWriter(Asked(given, overwrite), schema)

    def streamReader(self, schema: StructType) -> api.DataSourceStreamReader:
        """Plans a stream of the columns of `schema`."""
        given = Options.of(self.options)
        given.check(*options.STREAM_READ)
        check(given)
        return StreamReader(given, schema)

    def _feed_reader(self, given: Options, log: DeltaLog, location: TableLocation) -> FeedReader:
        newest = log.snapshot() if self.pinned is None else log.snapshot_at(self.pinned)
        found = feed_range(log, given, newest)
        files = [file for each in found.changes(log) for file in changed_files(log, each, found.end)]
        return FeedReader(FeedScan.of(found.end, found.end.schema.names), location, files)


def _check_python(spark: SparkSession) -> None:
    """Raises an error unless the Python that Spark starts can load this module.

    Raises:
        InvalidSettingError: if it has another version, or lacks this package.
    """
    try:
        _ = spark.read.format(DataSource.name()).option(_PROBE, "true").load().schema
    except PySparkException as error:
        lines = [line.strip() for line in str(error).splitlines() if any(each in line for each in _WRONG_PYTHON)]
        if not lines:
            raise
        raise InvalidSettingError(
            f"Spark starts a Python that cannot load the data source ({lines[-1]})",
            remedy=f"Set the environment variable PYSPARK_PYTHON, which is `python3` by default, to {sys.executable} "
            "before Spark starts; on a cluster or a Spark Connect server, to a Python with this package",
        ) from error
