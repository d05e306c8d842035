"""KeySet: the distinct keys of rows, which finds the rows of other tables that have any of these keys, exactly.

Values are equal as in SQL: -0.0 and 0.0 are equal, and so are all NaN. A `char` is padded and a decimal has its
column's scale already, because they are read as values of the column. A key with a null equals no other key.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

_BITS: Final = {pa.float32(): pa.int32(), pa.float64(): pa.int64()}
_LARGE: Final = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}


@dataclass(frozen=True)
class KeySet:
    """The distinct keys of some rows.

    Attributes:
        columns: the distinct values of each column.
        pairs: for each column after the first, the distinct pairs of the number of a value of the columns before it and
            the number of its own value, as a single number.
    """

    columns: tuple[pa.Array, ...]
    pairs: tuple[pa.Array, ...]

    @classmethod
    def of(cls, rows: pa.Table) -> KeySet:
        """Returns the keys of rows that `comparable` has returned, without nulls."""
        columns = tuple(pc.unique(column) for column in rows.columns)
        found = cls(columns, ())
        for column, values in zip(rows.columns[1:], columns[1:], strict=True):
            both = _paired(found.numbers(rows), column, values)
            found = cls(columns, (*found.pairs, pc.unique(both)))
        return found

    def __len__(self) -> int:
        return len(self.pairs[-1] if self.pairs else self.columns[0])

    def numbers(self, rows: pa.Table) -> pa.ChunkedArray:
        """Returns for each row the number of its key in this set, or null if its key is not in the set."""
        numbers = pc.index_in(rows.column(0), value_set=self.columns[0])
        for at, pairs in enumerate(self.pairs, 1):
            numbers = pc.index_in(_paired(numbers, rows.column(at), self.columns[at]), value_set=pairs)
        return numbers

    def among(self, rows: pa.Table) -> pa.ChunkedArray:
        """Returns for each row whether its key is in this set."""
        return pc.is_valid(self.numbers(rows))


def _paired(numbers: pa.ChunkedArray, column: pa.ChunkedArray, values: pa.Array) -> pa.ChunkedArray:
    """Returns a different number for each pair of numbers, or null if either is null."""
    own = pc.index_in(column, value_set=values)
    return pc.add(pc.multiply(numbers.cast(pa.int64()), len(values)), own.cast(pa.int64()))


def comparable(rows: pa.Table) -> pa.Table:
    """Returns the rows with values that are the same in Arrow if they are equal in SQL."""
    return pa.table([_comparable(column) for column in rows.columns], names=rows.schema.names)


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if column.type in _LARGE:
        return column.cast(_LARGE[column.type])
    if column.type not in _BITS:
        return column
    positive_zero = pc.add(column, pa.scalar(0.0, column.type))
    same_nan = pc.if_else(pc.is_nan(positive_zero), pa.scalar(float("nan"), column.type), positive_zero)
    return pa.chunked_array([chunk.view(_BITS[column.type]) for chunk in same_nan.chunks], _BITS[column.type])


def has_null(rows: pa.Table) -> pa.ChunkedArray:
    """Returns for each row whether any of its values is null."""
    return functools.reduce(pc.or_, (pc.is_null(column) for column in rows.columns))


def repeated(rows: pa.Table, most: int) -> tuple[int, list[int]]:
    """Counts the rows whose key an earlier row has, of rows that `comparable` has returned, without nulls.

    Returns:
        The number of these rows, and the places of a row for each of the first such keys, at most `most`.
    """
    keys = KeySet.of(rows)
    if len(keys) == rows.num_rows:
        return 0, []
    numbers = keys.numbers(rows).combine_chunks()
    counts = pc.value_counts(numbers)
    several = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    return rows.num_rows - len(keys), [pc.index(numbers, number).as_py() for number in several[:most]]
