"""Defines the columns of a scan for a row's file and position, and collects their values.

Spark reports a file by another name than the log. Rows carry Spark's name, which costs nothing, and only the names that
were found are translated.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.spark import errors
from dbt.adapters.silt.engine.commands.spark.shared_storage import reported_path
from dbt.adapters.silt.engine.kernel.errors import InternalError
from dbt.adapters.silt.engine.kernel.files import stats_json
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.paths import absolute_name

T = TypeVar("T", int, str)

FILE: Final = "__silt_file"
"""The column of the file's path, as Spark reports it."""

ROW: Final = "__silt_row"
"""The column that holds a row's position in its file, from 0."""

_PLACE: Final = "__silt_place"
_FILE_BITS: Final = 32
_MOST_ROWS: Final = 1 << 26
"""If the files have at most this many rows, positions of 8 bytes are collected without grouping them in Spark."""


@dataclass(frozen=True)
class FoundRows:
    """Rows of a file.

    Args:
        path: the file's path in the log.
        value: the rows' value of the column that distinguishes them; 0 without such a column.
        positions: the rows' positions as int64, unordered; a row that was found twice is included twice.
    """

    path: str
    value: int
    positions: pa.Array


def reports(root: str, path: str) -> tuple[str, ...]:
    """Returns the names by which Spark may report a file.

    Args:
        root: the table's folder, an absolute local path or a URI.
        path: the file's path in the log.
    """
    reported = reported_path(absolute_name(root, path))
    return (f"file:{reported}", f"file://{reported}") if reported.startswith("/") else (reported,)


def paths_by_report(log: DeltaLog, files: pa.Table) -> dict[str, str]:
    """Returns the paths of files in the log, by the names that Spark may report."""
    root, paths = log.store.root, files["path"].to_pylist()
    return {report: path for path in paths for report in reports(root, path)}


def rows_by_path(rows: DataFrame, log: DeltaLog, files: pa.Table) -> dict[str, int]:
    """Runs a job, and returns how many of the rows each file contains, by the log's path of its `FILE`.

    Args:
        files: rows of `Snapshot.files`, the files that were read.
    """
    with errors.mapped():
        found = rows.groupBy(FILE).agg(F.count(F.lit(1)).alias(ROW)).collect()
    paths = paths_by_report(log, files)
    return {_known(paths, row[FILE], log): row[ROW] for row in found}


def collect(rows: DataFrame, log: DeltaLog, files: pa.Table, by: str | None = None) -> list[FoundRows]:
    """Runs a job, and returns the positions of rows in their files, by `FILE` and `ROW`.

    Args:
        files: rows of `Snapshot.files`, the files that were read.
        by: a column of integers that distinguishes the rows of a file.
    """
    paths = paths_by_report(log, files)
    codes = {zlib.crc32(report.encode()): path for report, path in paths.items()} if _are_few(files) else {}
    if len(codes) == len(paths):
        return [FoundRows(_known(codes, code, log), value, places) for code, value, places in _packed(rows, by)]
    return [FoundRows(_known(paths, report, log), value, places) for report, value, places in _grouped(rows, by)]


def _are_few(files: pa.Table) -> bool:
    # Rows that deletion vectors delete have positions too.
    counts = stats_json.num_records(files)
    return not counts.null_count and (pc.sum(counts).as_py() or 0) <= _MOST_ROWS


def _known(paths: Mapping[T, str], found: T, log: DeltaLog) -> str:
    if found not in paths:
        raise InternalError(
            f"Spark has read a data file ({found}) that was not asked for; nothing was committed",
            remedy="This is a bug of dbt-silt: please report it with this message",
            table=log.name,
        )
    return paths[found]


def _packed(rows: DataFrame, by: str | None) -> Iterator[tuple[int, int, pa.Array]]:
    """Yields the rows of each file and value: the check sum of the file's name, the value, and the positions.

    Spark returns a number for each row, with the file in its upper bits, and needs no shuffle.
    """
    place = f"shiftleft(crc32({FILE}), {_FILE_BITS}) | {ROW} as {_PLACE}"
    with errors.mapped():
        found = rows.selectExpr(place, *([] if by is None else [by])).toArrow().combine_chunks()
    values = [0] if by is None else found[by].unique().to_pylist()
    for value in values:
        places = found[_PLACE] if by is None else found.filter(pc.field(by) == value)[_PLACE]
        for code, positions in _by_file(places.combine_chunks()):
            yield code, value, positions


def _by_file(places: pa.Array) -> Iterator[tuple[int, pa.Array]]:
    numbers = places.view(pa.uint64())
    files = pc.shift_right(numbers, pa.scalar(_FILE_BITS, pa.uint64())).dictionary_encode()
    positions = pc.bit_wise_and(numbers, pa.scalar((1 << _FILE_BITS) - 1, pa.uint64())).view(pa.int64())
    positions = positions.take(pc.array_sort_indices(files.indices))
    sizes = {each["values"]: each["counts"] for each in files.indices.value_counts().to_pylist()}
    start = 0
    for index, code in enumerate(files.dictionary.to_pylist()):
        yield code, positions.slice(start, sizes[index])
        start += sizes[index]


def _grouped(rows: DataFrame, by: str | None) -> Iterator[tuple[str, int, pa.Array]]:
    """Like `_packed`, but with the name of the file, and grouped by Spark."""
    keys = [FILE] if by is None else [FILE, by]
    with errors.mapped():
        found = rows.groupBy(*keys).agg(F.collect_list(ROW).alias(ROW)).toArrow()
    values = [0] * found.num_rows if by is None else found[by].to_pylist()
    for report, value, places in zip(found[FILE].to_pylist(), values, found[ROW], strict=True):
        yield report, value, places.values
