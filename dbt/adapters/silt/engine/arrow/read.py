"""Reads a table as Arrow, without Spark.

    from dbt.adapters.silt import engine as silt

    orders = silt.read("main.orders", warehouse="warehouse", columns=["id", "amount"], where="id > 3")

What comes is a `pyarrow.Table`, which pandas, polars and DuckDB take as it is. `read_batches` gives the same rows as a
stream, of which only a part is in memory.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final, TypedDict

import pyarrow as pa

from dbt.adapters.silt.engine.arrow.file_read import read_file
from dbt.adapters.silt.engine.arrow.parallel import in_order
from dbt.adapters.silt.engine.arrow.scan import ArrowScan
from dbt.adapters.silt.engine.arrow.tables import TableSource, path_in, snapshot_of
from dbt.adapters.silt.engine.kernel import option_names
from dbt.adapters.silt.engine.kernel.errors import DataFileChangedError, DataFileMissingError
from dbt.adapters.silt.engine.kernel.log import origins
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.storage.settings import StorageSettings
from dbt.adapters.silt.engine.kernel.table.actions import AddFile
from dbt.adapters.silt.engine.kernel.table.active_files import files_table
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE, Expression
from dbt.adapters.silt.engine.sql.conditions.exact import exact_predicate

if TYPE_CHECKING:
    from typing_extensions import Unpack

_FOLDER_FILES: Final = 4
_OBJECT_FILES: Final = 16


class ReadOptions(TypedDict, total=False):
    """Further arguments of `read` and `read_batches`.

    Attributes:
        version: of the table; the newest by default.
        timestamp: reads the table as it was then; a time without a zone is in UTC.
        storage: how the object store is reached.
        external_paths: whether the table may name files that are neither in its folder nor in the warehouse.
        time_zone: of times in `where` that name none; UTC by default.
    """

    version: int | None
    timestamp: str | datetime | None
    storage: StorageSettings | None
    external_paths: bool
    time_zone: str


def read(
    name: str,
    warehouse: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    **options: Unpack[ReadOptions],
) -> pa.Table:
    """The rows of a table.

    Args:
        name: `table`, `schema.table` or `database.schema.table` of the warehouse; or the path or URL of a table.
        warehouse: its folder or URL.
        columns: those to read, in this order; all of them by default.
        where: a condition in SQL; the rows for which it is true are read.
        options: see ReadOptions.

    Raises:
        InvalidArgumentError: there is no such option.
        UnsupportedStatementError: a part of the condition can only be carried out by Spark.
        ColumnNotFoundError: there is no such column.
        UnsupportedFeatureError: the table, or a column, needs what is not read here.
        DataFileMissingError: a file is not there, as after a VACUUM.
        SiltError: see `kernel.errors`.
    """
    return read_batches(name, warehouse, columns=columns, where=where, **options).read_all()


def read_batches(
    name: str,
    warehouse: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    **options: Unpack[ReadOptions],
) -> pa.RecordBatchReader:
    """As `read`, as a stream: a few files are read at a time, and no more of them than is taken.

    Errors of files are raised when their rows are taken.
    """
    option_names.check(options, ("columns", "where", *ReadOptions.__annotations__), "a read of rows")
    log = TableSource(
        name, warehouse, options.get("storage"), external_paths=options.get("external_paths", False)
    ).log()
    snapshot = snapshot_of(log, options.get("version"), options.get("timestamp"))
    predicate = condition(where, snapshot, log.name, options.get("time_zone", "UTC"))
    found = TableRead(log, snapshot, ArrowScan.of(snapshot, columns, predicate))
    return pa.RecordBatchReader.from_batches(found.scan.schema, found.batches())


def condition(where: str | None, snapshot: Snapshot, name: str, time_zone: str = "UTC") -> Expression:
    """The predicate of a condition on a table.

    Args:
        name: the table's, by whose parts columns may be qualified.

    Raises:
        UnsupportedStatementError: a part of it can only be carried out by Spark.
        ColumnNotFoundError: it names a column that is not there.
    """
    if where is None:
        return TRUE
    qualifier = () if path_in(name) is not None else tuple(name.split("."))
    return exact_predicate(where, snapshot.schema, [qualifier], time_zone)


@dataclass(frozen=True)
class TableRead:
    """A scan of a table that this process has opened."""

    log: DeltaLog
    snapshot: Snapshot
    scan: ArrowScan

    def batches(self, at_once: int | None = None) -> Generator[pa.RecordBatch, None, None]:
        """The rows, file by file.

        Args:
            at_once: how many files are read at the same time; None for as many as the storage answers well.

        Raises:
            SiltError: as `read`.
        """
        usual = _FOLDER_FILES if self.log.store.has_folders else _OBJECT_FILES
        try:
            yield from in_order(self._of_file, self.scan.files, usual if at_once is None else at_once)
        except (DataFileMissingError, DataFileChangedError) as error:
            raise origins.with_origin(self.log, self.snapshot, error) from error

    def head(self, limit: int) -> pa.Table:
        """The first rows, up to a number; files after them are not opened. Raises as `batches`."""
        found: list[pa.RecordBatch] = []
        left = limit
        with contextlib.closing(self.batches(at_once=1)) as batches:
            while left > 0 and (batch := next(batches, None)) is not None:
                found.append(batch.slice(0, left))
                left -= found[-1].num_rows
        return pa.Table.from_batches(found, self.scan.schema)

    def _of_file(self, file: AddFile) -> Iterator[pa.RecordBatch]:
        """The rows of a file, which is compared with the log as before each read of Spark's (`file_guard`)."""
        log, snapshot = self.log, self.snapshot
        log.guard.check(log.store, files_table([file]), snapshot.metadata, log.name, snapshot.version)
        yield from read_file(self.scan, file, log.store)
