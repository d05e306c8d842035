"""Reads a table as a stream: first its present rows, then the rows that each commit adds or changes."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
from pyspark.sql import datasource as api
from pyspark.sql.types import StructType

from dbt.adapters.silt.engine.arrow.tables import TableLocation
from dbt.adapters.silt.engine.datasource import reader
from dbt.adapters.silt.engine.datasource.options import Options, at_most_one, starting_version
from dbt.adapters.silt.engine.datasource.portions import Offset, Portions, StreamFile
from dbt.adapters.silt.engine.datasource.pyspark_classes import streaming
from dbt.adapters.silt.engine.datasource.reader import FeedPart, FeedScan, FilePart, changed_rows, file_rows
from dbt.adapters.silt.engine.kernel.errors import ConcurrentDropError, InvalidArgumentError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.rows.scan import ArrowScan
from dbt.adapters.silt.engine.kernel.scan.change_feed import FEED_COLUMNS, ChangedFile
from dbt.adapters.silt.engine.kernel.table.actions import AddFile

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
else:
    from dbt.adapters.silt.engine.datasource.pyspark_classes import SupportsTriggerAvailableNow


ReadLimit: TypeAlias = Any
"""A limit of PySpark."""


@dataclass(frozen=True)
class StreamPart(api.InputPartition):
    """Files of a task, with the scan and the table's location: the reader was created when the query began."""

    part: api.InputPartition
    scan: ArrowScan | FeedScan
    location: TableLocation


class StreamReader(api.DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Finds offsets and the files between them; the planning process keeps the reader until the query ends."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options, self._schema = options, schema
        self._is_feed = options.flag("readChangeFeed")
        self._target: int | None = None
        self._limit = _limit_of(options)

    def initialOffset(self) -> dict[str, Any]:
        return Offset(self._log.snapshot().metadata.id).to_json()

    def latestOffset(self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None) -> dict[str, Any]:
        newest = self._newest()
        version = newest.version if self._target is None else min(self._target, newest.version)
        end = Offset(newest.metadata.id, version, first=self._first)
        if start is None:  # before PySpark 4.2
            return end.to_json()
        begin = Offset.from_json(start)
        if _is_nothing_new(begin, end):
            return start
        end = replace(end, first=end.first if begin.is_begin else None)
        return self._cut(begin, end, Limit.of(limit)).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        return self._limit

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._newest().version

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[api.InputPartition]:
        begin, last = Offset.from_json(start), Offset.from_json(end)
        snapshot = self._newest()
        self._check_table(snapshot, last)
        files = [file for _, file in self._files(begin, last)]
        if not files:
            return []
        location = TableLocation.of(self._options.table, self._log.store)
        scan, parts = self._scan(snapshot), self._parts(files)
        return [StreamPart(part, scan, location) for part in parts]

    def read(self, partition: api.InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, StreamPart):
            return iter(())
        scan, location, part = partition.scan, partition.location, partition.part
        return changed_rows(scan, location, part) if isinstance(scan, FeedScan) else file_rows(scan, location, part)

    def _files(self, begin: Offset, end: Offset) -> Iterator[tuple[Offset, StreamFile]]:
        """Yields the files between two offsets, each with the offset after it."""
        for portion in self._portions.after(begin, end):
            last = end.files if portion.version == end.version and end.files is not None else None
            for number, file in enumerate(portion.files, portion.done + 1):
                if last is not None and number > last:
                    return
                after = replace(end, version=portion.version, files=number, is_snapshot=portion.is_snapshot)
                is_last = number == portion.done + len(portion.files)
                yield (replace(after, files=None) if is_last else after), file

    def _cut(self, begin: Offset, end: Offset, limit: Limit) -> Offset:
        """Returns `end`, or an earlier offset if the batch would be too large; changes of a version are not split."""
        if limit.is_none:
            return end
        taken, after = limit, begin
        for offset, file in self._files(begin, end):
            is_started = offset.version == after.version and self._is_feed and not offset.is_snapshot
            if not is_started and not taken.has_room:
                return after
            taken = taken.less(file)
            after = replace(offset, files=None) if self._is_feed and not offset.is_snapshot else offset
        return end

    def _scan(self, snapshot: Snapshot) -> ArrowScan | FeedScan:
        """Returns the scan of each file, without columns that were added since the query began.

        Raises:
            TypeMismatchError, ColumnNotFoundError: if a column no longer exists, or has changed.
        """
        columns = StructType([each for each in self._schema if not (self._is_feed and each.name in FEED_COLUMNS)])
        names = reader.chosen(snapshot.schema, columns, self._log.name)
        if self._is_feed:
            return FeedScan.of(snapshot, names)
        return replace(ArrowScan.of(snapshot, names), files=())

    def _parts(self, files: Sequence[StreamFile]) -> Sequence[FilePart | FeedPart]:
        if self._is_feed:
            return reader.of_changes(file for file in files if isinstance(file, ChangedFile))
        return reader.of_files(file for file in files if isinstance(file, AddFile))

    def _check_table(self, snapshot: Snapshot, offset: Offset) -> None:
        if snapshot.metadata.id != offset.table:
            raise ConcurrentDropError(
                "the table was dropped and re-created since the stream began",
                remedy="Start a new stream with a new checkpoint",
                table=self._log.name,
            )

    def _newest(self) -> Snapshot:
        return self._log.snapshot()

    @functools.cached_property
    def _log(self) -> DeltaLog:
        return self._options.table.log()

    @functools.cached_property
    def _first(self) -> int | None:
        """The first version to read, for `latest` the next version; None if the stream begins with the whole table."""
        if (self._options.text("startingVersion") or "").lower() == "latest":
            return self._newest().version + 1
        return starting_version(self._log, self._options)

    @property
    def _portions(self) -> Portions:
        flag = self._options.flag
        return Portions(self._log, self._is_feed, flag("skipChangeCommits"), flag("ignoreDeletes"))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_log", "_first")}


def _is_nothing_new(begin: Offset, end: Offset) -> bool:
    if begin.is_begin:
        return end.first is not None and end.first > end.version
    return begin.version >= end.version and begin.files is None


def check(options: Options) -> None:
    """Raises an error unless this PySpark supports the options of a stream.

    Raises:
        InvalidArgumentError: if a limit is given, but not supported.
    """
    for name in ("maxFilesPerTrigger", "maxBytesPerTrigger"):
        if options.text(name) is not None and not has_limits():
            raise InvalidArgumentError(
                f"the option `{name}` needs PySpark 4.2", remedy="Remove it: each batch then reads all new rows"
            )


def has_limits() -> bool:
    """Returns whether this PySpark has limits of batches: since 4.2."""
    return hasattr(streaming, "ReadMaxFiles")


def _limit_of(options: Options) -> ReadLimit:
    """Returns the limit in the options, or None if this PySpark does not support limits.

    Raises:
        InvalidArgumentError: if two limits are given.
    """
    at_most_one(options, ("maxFilesPerTrigger", "maxBytesPerTrigger"))
    if not has_limits():
        return None
    files, size = options.number("maxFilesPerTrigger"), options.number("maxBytesPerTrigger")
    if files is not None:
        return streaming.ReadMaxFiles(files)
    return streaming.ReadAllAvailable() if size is None else streaming.ReadMaxBytes(size)


@dataclass(frozen=True)
class Limit:
    """The number of files, or of bytes, that a batch has room for; None for any number.

    Attributes:
        is_empty: whether the batch is still empty and has room for a file of any size.
    """

    files: int | None = None
    size: int | None = None
    is_empty: bool = True

    @classmethod
    def of(cls, given: ReadLimit) -> Limit:
        """Converts a limit of PySpark."""
        return cls(getattr(given, "max_files", None), getattr(given, "max_bytes", None))

    @property
    def is_none(self) -> bool:
        return self.files is None and self.size is None

    @property
    def has_room(self) -> bool:
        return self.is_empty or ((self.files is None or self.files > 0) and (self.size is None or self.size > 0))

    def less(self, file: StreamFile) -> Limit:
        """Returns the remaining room after a file."""
        held = file.file.size if isinstance(file, ChangedFile) else file.size
        return replace(
            self,
            files=None if self.files is None else self.files - 1,
            size=None if self.size is None else self.size - held,
            is_empty=False,
        )
