"""The files of a table as upkeep and OPTIMIZE see them, and the bins of files that are written again."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Final

TARGET_FILE_SIZE: Final = 256 << 20
"""The bytes of a file if the table does not set `delta.targetFileSize`.

delta-spark's default of 1 GiB is for clusters: here a single task writes a file, and an UPDATE without deletion vectors
rewrites it; Databricks tunes tables of less than 2.5 TB to 256 MiB.
"""

SMALL: Final = 0.75
"""A file below this share of the target size is worth rewriting (Iceberg's rule for its own bin-packing)."""

SPOILED: Final = 0.25
"""A file is written again if a deletion vector marks at least this share of its rows."""

OPEN_BYTES: Final = 4 << 20
"""The bytes that could be read while a file is opened: Spark's `spark.sql.files.openCostInBytes`."""


@dataclass(frozen=True)
class FileState:
    """A data file, as the log describes it.

    Attributes:
        key: its path, with its deletion vector, as in `active_files.file_key`.
        size: its bytes.
        marked: the share of its rows that a deletion vector marks, 0 to 1.
        partition: its partition values, as the log spells them.
        cube: the cube of files that it was clustered with, by the columns that the table is clustered by now, if any.
        is_foreign: whether its layout belongs to another engine.
        is_stale: whether it was clustered by other columns.
        span: the ends of its values of the first clustering column, by their ranks among all files; None if unknown.
    """

    key: str
    size: int
    marked: float = 0.0
    partition: tuple[tuple[str, str | None], ...] = ()
    cube: str = ""
    is_foreign: bool = False
    is_stale: bool = False
    span: tuple[int, int] | None = None

    @property
    def live(self) -> float:
        """The bytes of its rows that are not deleted, if all rows are equally long."""
        return self.size * (1 - self.marked)

    @property
    def is_spoiled(self) -> bool:
        return self.marked >= SPOILED


@dataclass(frozen=True)
class Bin:
    """Files that are written again together: as a single file of a partition, or as files of a clustered table.

    Attributes:
        cube: the cube that the new file belongs to, as the file that it replaces; empty for a new cube, or for none.
    """

    files: tuple[FileState, ...]
    cube: str = ""

    @property
    def size(self) -> int:
        """The bytes that are read to write the files again."""
        return sum(each.size for each in self.files)

    @property
    def saved(self) -> float:
        """The bytes that each later read of the files saves; opening a file counts as reading 4 MiB."""
        opened = len(self.files) - 1 + max(0, self.depth - 1)
        return self.size - sum(each.live for each in self.files) + OPEN_BYTES * opened

    @property
    def depth(self) -> int:
        """The largest number of files that may hold the same value of the first clustering column."""
        spans = [each.span for each in self.files if each.span is not None]
        steps = sorted([*((first, -1) for first, _ in spans), *((last, 1) for _, last in spans)])
        return max(itertools.accumulate((-change for _, change in steps)), default=0)

    def score(self, reads: int) -> float:
        """Returns the bytes that later reads save for each byte that is read now.

        Args:
            reads: how often the table was read lately.
        """
        return max(reads, 1) * self.saved / max(self.size, 1)
