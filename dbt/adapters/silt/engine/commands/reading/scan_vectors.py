"""Selects rows of data files by position: rows that deletion vectors do not delete, or chosen rows.

If files and positions are few, the positions are literals of the plan. Otherwise the bitmaps of up to
`_MOST_FILES_OF_A_SCAN` files are an array of 64-bit words, and the file's size, a constant for each of its rows,
determines the start of its words in the array. If sizes or row counts are unknown, or files or rows are too many, the
bitmaps are broadcast, a row for each file, and joined by its path, which takes several times as long. (Reading the bits
from a binary column is many times slower, because Spark copies the bytes for each row.)
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

import pyarrow as pa
from pyroaring import BitMap64
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.spark.errors import OTHER_ROWS
from dbt.adapters.silt.engine.kernel.files import deletion_vectors, stats_json
from dbt.adapters.silt.engine.kernel.files.deletion_vectors import Positions

WORDS: Final = "__silt_words"
"""The column of each file's bitmap in a table of files."""

_MOST_LITERAL_FILES: Final = 4
_MOST_LITERAL_ROWS: Final = 500

_MOST_FILES_OF_A_SCAN: Final = 32
"""Each is a branch in the code that Spark generates; Java does not compile more than twice as many."""
_MOST_SCANS: Final = 16
_MOST_ROWS: Final = 1 << 28
"""The most rows in the files of a scan: the array of their words is part of the plan, and so takes up to 32 MiB."""


class Way(Enum):
    """The technique by which a scan selects rows."""

    NUMBERS = "positions of one file in the plan"
    ARRAY = "one array of words for all files"
    JOIN = "a table of words, joined by the path"


@dataclass(frozen=True)
class FileRows:
    """Rows of a file.

    Args:
        size: the file's size in bytes.
        records: the number of rows in the file; None if the log does not contain it.
        positions: the positions of the rows.
    """

    size: int
    records: int | None
    positions: BitMap64


@dataclass(frozen=True)
class RowFilter:
    """A filter of the rows of some files: the rows at the positions, or all other rows.

    Args:
        files: the positions in each file.
        keeps: whether the rows at the positions are read, instead of all other rows.
        way: the technique by which Spark selects the rows.
    """

    files: tuple[FileRows, ...]
    keeps: bool
    way: Way

    def condition(self, spark: SparkSession, size: str, row: str) -> Column:
        """Returns the condition on a row, given the columns of its file's size and its position; not for `Way.JOIN`."""
        return self._by_numbers(row) if self.way is Way.NUMBERS else self._by_array(spark, size, row)

    def by_words(self, row: str) -> Column:
        """Returns the condition on a row, given `WORDS` of its file and the column of its position."""
        word = f"get({WORDS}, cast(shiftright({row}, 6) as int))"
        return F.expr(f"coalesce(shiftright({word}, cast({row} & 63 as int)) & 1, 0) = {int(self.keeps)}")

    def words(self) -> pa.Array:
        """Returns `WORDS` of each file."""
        return _lists([deletion_vectors.words(of_file.positions) for of_file in self.files])

    def _by_numbers(self, row: str) -> Column:
        (of_file,) = self.files
        if not of_file.positions:
            return F.lit(not self.keeps)
        return F.expr(f"{row} {'' if self.keeps else 'not '}in ({', '.join(map(str, of_file.positions))})")

    def _by_array(self, spark: SparkSession, size: str, row: str) -> Column:
        """Returns the condition; it fails the job if a file has another size, or more rows, than in the log."""
        parts = [deletion_vectors.words(each.positions, each.records or 0) for each in self.files]
        starts = itertools.accumulate(map(len, parts), initial=0)
        known = zip(self.files, starts, strict=False)
        branches = sorted((each.size, each.records or 0, start) for each, start in known)
        words = spark.createDataFrame(pa.table({WORDS: _lists([pa.concat_arrays(parts)])})).scalar()
        word = F.get(words, F.expr(f"{_start(branches, size, row)} + cast(shiftright({row}, 6) as int)"))
        bit = F.call_function("shiftright", word, F.expr(f"cast({row} & 63 as int)")).bitwiseAND(F.lit(1))
        return F.coalesce(bit, F.raise_error(F.lit(OTHER_ROWS)).cast("bigint")) == F.lit(int(self.keeps))


def filters(files: pa.Table, positions: Positions, keeps: bool, has_join: bool) -> list[tuple[pa.Table, RowFilter]]:
    """Returns, for each set of files that are read together, a table of the files and the filter for their rows.

    Args:
        files: rows of `Snapshot.files`.
        positions: positions of rows in each file, by path.
        keeps: whether the rows at the positions are read, instead of all other rows.
        has_join: whether the files are joined with a table of files anyway.
    """
    columns = (files["path"].to_pylist(), files["size"].to_pylist(), stats_json.num_records(files).to_pylist())
    known = [FileRows(size or 0, rows, positions[path]) for path, size, rows in zip(*columns, strict=True)]
    way, scans = (Way.JOIN, [range(len(known))]) if has_join else _ways(known)
    return [
        (files.take(pa.array(places, pa.int64())), RowFilter(tuple(known[index] for index in places), keeps, way))
        for places in scans
    ]


def _ways(files: Sequence[FileRows]) -> tuple[Way, Sequence[Sequence[int]]]:
    """Returns the way to apply the vectors, and for each scan the indexes of its files."""
    all_of_them = [range(len(files))]
    if len(files) <= _MOST_LITERAL_FILES and sum(len(each.positions) for each in files) <= _MOST_LITERAL_ROWS:
        return Way.NUMBERS, [[index] for index in range(len(files))]
    rounds: dict[int, list[int]] = defaultdict(list)
    seen: dict[int, int] = defaultdict(int)
    for index, each in enumerate(files):
        if not each.size or each.records is None:
            return Way.JOIN, all_of_them
        rounds[seen[each.size]].append(index)
        seen[each.size] += 1
    step = _MOST_FILES_OF_A_SCAN
    scans = [same[start : start + step] for same in rounds.values() for start in range(0, len(same), step)]
    rows = max(sum(files[index].records or 0 for index in scan) for scan in scans)
    return (Way.ARRAY, scans) if len(scans) <= _MOST_SCANS and rows <= _MOST_ROWS else (Way.JOIN, all_of_them)


def _start(branches: Sequence[tuple[int, int, int]], size: str, row: str) -> str:
    """Returns the SQL for the index of a file's first word; null if no file has the size, or the row is too large.

    Args:
        branches: size, number of rows and index of each file, ordered by size.
    """
    if len(branches) == 1:
        ((of_file, rows, start),) = branches
        return f"if({size} = {of_file} and {row} < {rows}, {start}, null)"
    middle = len(branches) // 2
    lower, upper = (_start(part, size, row) for part in (branches[:middle], branches[middle:]))
    return f"if({size} < {branches[middle][0]}, {lower}, {upper})"


def _lists(parts: Sequence[pa.Array]) -> pa.Array:
    offsets = list(itertools.accumulate(map(len, parts), initial=0))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.concat_arrays(parts))
