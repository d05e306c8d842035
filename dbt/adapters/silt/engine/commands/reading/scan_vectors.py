"""Selects rows of data files by position: those that deletion vectors leave in a table, or chosen ones.

Few positions in few files are put into the plan as numbers. Otherwise the bitmaps are broadcast, one row for each file,
as 64-bit words, and each row of a file looks at its bit. (As bytes cut out of a binary column the same is many times
slower, because Spark copies them for each row.)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyroaring import BitMap64
from pyspark.sql import Column
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.kernel.files import deletion_vectors

WORDS: Final = "__silt_words"
"""The column of a table of files that holds each file's bitmap."""

_MOST_LITERAL_FILES = 4
_MOST_LITERAL_ROWS = 500


@dataclass(frozen=True)
class RowFilter:
    """Which rows of some files are read: those of their bitmaps, or all but those.

    Args:
        bitmaps: one for each file.
        keeps: whether the bitmaps' rows are the ones that are read.
    """

    bitmaps: tuple[BitMap64, ...]
    keeps: bool

    @property
    def is_literal(self) -> bool:
        """Whether it is about one file and can be put into a plan as it is."""
        return len(self.bitmaps) == 1 and can_be_literal(self.bitmaps)

    def literal(self, row: str) -> Column:
        """The condition on a row of the only file, by the column that has the row's position."""
        (bitmap,) = self.bitmaps
        if not bitmap:
            return F.lit(not self.keeps)
        return F.expr(f"{row} {'' if self.keeps else 'not '}in ({', '.join(map(str, bitmap))})")

    def by_words(self, row: str) -> Column:
        """The condition on a row, by `WORDS` of its file and the column that has its position."""
        word = f"try_element_at({WORDS}, cast({row} div 64 as int) + 1)"
        return F.expr(f"coalesce(getbit({word}, cast({row} % 64 as int)), 0) = {int(self.keeps)}")

    def words(self) -> pa.Array:
        """`WORDS` of each file."""
        of_files = [deletion_vectors.words(bitmap) for bitmap in self.bitmaps]
        offsets = [0]
        for words in of_files:
            offsets.append(offsets[-1] + len(words))
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.concat_arrays(of_files))


def can_be_literal(bitmaps: Iterable[BitMap64]) -> bool:
    """Whether files with these bitmaps are read each by itself, the positions in the plan."""
    sizes = [len(bitmap) for bitmap in bitmaps]
    return len(sizes) <= _MOST_LITERAL_FILES and sum(sizes) <= _MOST_LITERAL_ROWS
