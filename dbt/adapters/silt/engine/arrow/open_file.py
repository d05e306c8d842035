"""Opens data files for Arrow; in object stores it reads them by ranges."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dbt.adapters.silt.engine.arrow.scan import ArrowScan
from dbt.adapters.silt.engine.kernel.errors import (
    DataFileMissingError,
    SiltError,
    StorageError,
    TableDamagedError,
    UnsupportedFeatureError,
)
from dbt.adapters.silt.engine.kernel.files import file_guard, stats_json
from dbt.adapters.silt.engine.kernel.files.data_files import located
from dbt.adapters.silt.engine.kernel.files.file_guard import Contradiction, Expected
from dbt.adapters.silt.engine.kernel.files.footer_check import read_footer
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing, Store
from dbt.adapters.silt.engine.kernel.table.actions import AddFile
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE
from dbt.adapters.silt.engine.kernel.table.paths import absolute_name, decode_path, is_absolute


@contextlib.contextmanager
def open_parquet(scan: ArrowScan, file: AddFile, store: Store) -> Iterator[pq.ParquetFile]:
    """Opens a data file with Arrow and checks its size and number of rows against the log.

    Raises:
        DataFileMissingError: if the file is missing.
        DataFileChangedError: if the file has another size or number of rows.
        ExternalPathError: if the file is at a location that the table may not use.
        StorageError: if the storage failed.
        pa.ArrowException, OSError: if the file is not Parquet.
    """
    name = decode_path(file.path)
    with _source(scan, store, name) as source:
        size = source.size()
        problem = file_guard.size_problem(Expected(name, file.size, file.modification_time, file.stats), size)
        if problem is not None:
            raise file_guard.changed(Contradiction(problem), absolute_name(store.root, name), scan.table, scan.version)
        # Only a read with a predicate looks at the statistics of the footer.
        footer = None if scan.predicate == TRUE else read_footer(source)
        buffered = not store.has_folders
        parquet = pq.ParquetFile(source, metadata=footer, coerce_int96_timestamp_unit="us", pre_buffer=buffered)
        _check_rows(scan, file, parquet.metadata.num_rows, absolute_name(store.root, name))
        yield parquet


@contextlib.contextmanager
def problems(scan: ArrowScan, file: AddFile) -> Iterator[None]:
    """Adds the table, the version and the file to errors.

    Raises:
        TableDamagedError: if Arrow cannot read the file.
        StorageError: if the operating system cannot read the file.
    """
    name = decode_path(file.path)
    try:
        yield
    except (TableDamagedError, UnsupportedFeatureError) as error:
        if error.table is not None:
            raise
        raise _of_file(error, name, scan) from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # a column's name may not be UTF-8
        if isinstance(error, OSError) and error.errno is not None:
            raise StorageError(f"the data file {name} cannot be read ({error.strerror})", table=scan.table) from error
        raise TableDamagedError(
            f"the data file {name} cannot be read ({first_line(error)})",
            table=scan.table,
            version=scan.version,
            details={"path": name},
        ) from error


@contextlib.contextmanager
def _source(scan: ArrowScan, store: Store, name: str) -> Iterator[Any]:
    """Opens the file for Arrow; objects without their buffer, which would split Arrow's large reads."""
    where, own = located(store, name)
    try:
        found: Any = where.open_input(own)
    except ObjectMissing as error:
        raise _missing(scan, name) from error
    raw = found.raw if isinstance(found, io.BufferedReader) else found
    with found, raw if isinstance(raw, pa.NativeFile) else pa.PythonFile(raw, mode="r") as source:
        yield source


def _missing(scan: ArrowScan, name: str) -> DataFileMissingError:
    where: dict[str, Any] = {"table": scan.table, "version": scan.version, "details": {"path": name}}
    if not is_absolute(name):
        return DataFileMissingError(f"the data file {name} is missing", **where)
    return DataFileMissingError(
        f"the data file {name} is missing: the table is a shallow clone, and VACUUM or a drop has deleted the file of "
        "its source",
        remedy="Restore the source's file from a copy, or clone the source again; a deep clone has its own files",
        **where,
    )


def _check_rows(scan: ArrowScan, file: AddFile, rows: int, path: str) -> None:
    said = stats_json.record_count(file.stats)
    if said is not None and said != rows:
        problem = f"the data file {decode_path(file.path)} has {rows} rows, but the log says {said}"
        raise file_guard.changed(Contradiction(problem), path, scan.table, scan.version)


def _of_file(error: SiltError, name: str, scan: ArrowScan) -> SiltError:
    """Returns the error with the file, the table and the version; `it` in its message is the file."""
    return type(error)(
        f"the data file {name}: {error.problem}",
        remedy=error.action,
        table=scan.table,
        version=scan.version,
        details={**error.details, "path": name},
    )


def first_line(error: Exception) -> str:
    """Returns the first line of the message of an error, or the name of its class if the message is empty."""
    return (str(error).splitlines() or [type(error).__name__])[0]
