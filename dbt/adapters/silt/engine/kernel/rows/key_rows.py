"""KeyRows and KeyReader: the values of a key in data files, and the rows of other files that have the same keys."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.silt.engine.kernel.rows.file_read import read_file
from dbt.adapters.silt.engine.kernel.rows.key_set import KeySet, comparable, has_null, repeated
from dbt.adapters.silt.engine.kernel.rows.scan import ArrowScan
from dbt.adapters.silt.engine.kernel.rows.types import arrow_schema
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, Metadata
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE, And, Column, Comparison, Expression, In, Value
from dbt.adapters.silt.engine.kernel.table.schema import StructField, StructType
from dbt.adapters.silt.engine.kernel.table.text_lengths import has_char
from dbt.adapters.silt.engine.kernel.table.value_order import Doubles, value_order_of

EXAMPLES: Final = 3
"""The number of keys that an error shows."""

_FEW_VALUES: Final = 10_000
"""So many values are compared with the bounds of each file; of more values, only the least and the greatest."""
_ROWS_AT_ONCE: Final = 1 << 20
_FILES_AT_ONCE: Final = 4


@dataclass(frozen=True)
class KeyRows:
    """The rows of a key, without nulls.

    Attributes:
        values: the columns of the key.
    """

    values: pa.Table

    @functools.cached_property
    def keys(self) -> KeySet:
        return KeySet.of(self._comparable)

    @functools.cached_property
    def _comparable(self) -> pa.Table:
        return comparable(self.values)

    def repeated(self) -> tuple[int, pa.Table]:
        """Returns the number of rows whose key an earlier row has, and examples of these keys."""
        count, places = repeated(self._comparable, EXAMPLES)
        return count, self.values.take(pa.array(places, pa.int64()))

    def among(self, others: KeySet) -> KeyRows:
        """Returns the rows whose keys are among the others."""
        return KeyRows(self.values.filter(others.among(self._comparable)))

    def without(self, others: KeySet) -> KeyRows:
        """Returns the rows whose keys are not among the others."""
        return KeyRows(self.values.filter(pc.invert(others.among(self._comparable))))

    def one_of(self, schema: StructType) -> Expression:
        """Returns a condition that rows with these keys fulfil; it is exact enough to exclude files."""
        return _all_of(part for field in self._ordered(schema) for part in self._listed(field))

    def between(self, schema: StructType) -> Expression:
        """Returns a condition that rows with these keys fulfil; it is quick to evaluate for rows."""
        return _all_of(part for field in self._ordered(schema) for part in self._within(field))

    def _ordered(self, schema: StructType) -> Iterator[StructField]:
        """Yields the columns whose bounds exclude files; the bounds of a `char` are of texts without blanks."""
        for name in self.values.schema.names:
            field = schema.require(name)
            order = value_order_of(field.type)
            if order is not None and not isinstance(order, Doubles) and not has_char(field):
                yield field

    def _listed(self, field: StructField) -> Iterator[Expression]:
        distinct = pc.unique(self.values[field.name])
        if len(distinct) > _FEW_VALUES:
            yield from self._within(field)
            return
        found = _as_python(distinct)
        if found:
            yield In(Column((field.name,)), found)

    def _within(self, field: StructField) -> Iterator[Expression]:
        ends = pc.min_max(self.values[field.name])
        found = _as_python(pa.array([ends["min"], ends["max"]], self.values[field.name].type))
        if found:
            column = Column((field.name,))
            yield Comparison(">=", column, found[0])
            yield Comparison("<=", column, found[1])


def _all_of(parts: Iterator[Expression]) -> Expression:
    found = tuple(parts)
    return And(found) if found else TRUE


def _as_python(values: pa.Array) -> tuple[Value, ...]:
    """Returns the values, or nothing if Python has no value for one of them, such as a time after the year 9999."""
    try:
        return tuple(values.to_pylist())
    except (OverflowError, ValueError):
        return ()


@dataclass(frozen=True)
class KeyReader:
    """Reads the columns of a key in data files of a table.

    Attributes:
        store: the table's folder.
        table: name for messages.
        columns: the names of the columns, spelled as in the table.
    """

    store: Store
    table: str
    version: int
    metadata: Metadata
    columns: tuple[str, ...]

    @functools.cached_property
    def schema(self) -> StructType:
        return StructType.from_json(self.metadata.schema_string)

    def rows(self, files: Sequence[AddFile]) -> tuple[KeyRows, pa.Table]:
        """Reads all rows of files; returns the rows without a null, and the other rows.

        Raises:
            The errors of `read_file`.
        """
        found = pa.concat_tables([self._nothing(), *self._tables(files, TRUE)])
        mask = has_null(found)
        return KeyRows(found.filter(pc.invert(mask))), found.filter(mask)

    def matching(self, files: Sequence[AddFile], sought: KeyRows) -> KeyRows:
        """Returns the rows of files whose keys are among the sought. Raises as `rows`."""
        batches = self._tables(files, sought.between(self.schema))
        found = [KeyRows(each).among(sought.keys).values for each in _joined(batches, len(sought.keys))]
        return KeyRows(pa.concat_tables([self._nothing(), *found]))

    def _nothing(self) -> pa.Table:
        return arrow_schema((self.schema.require(name) for name in self.columns), self.table).empty_table()

    def _tables(self, files: Sequence[AddFile], predicate: Expression) -> Iterator[pa.Table]:
        """Yields the rows of each file that fulfil the predicate, a few files at once."""

        def read(file: AddFile) -> pa.Table:
            scan = ArrowScan(self.table, self.version, self.metadata, self.columns, predicate, (file,))
            return pa.Table.from_batches(read_file(scan, file, self.store), scan.schema)

        with ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
            for start in range(0, len(files), _FILES_AT_ONCE):
                yield from pool.map(read, files[start : start + _FILES_AT_ONCE])


def _joined(tables: Iterator[pa.Table], keys: int) -> Iterator[pa.Table]:
    """Yields larger tables: each is searched with a new index of the keys, which costs as much as so many rows."""
    gathered: list[pa.Table] = []
    for table in tables:
        gathered.append(table)
        if sum(each.num_rows for each in gathered) >= max(_ROWS_AT_ONCE, keys):
            yield pa.concat_tables(gathered)
            gathered = []
    if gathered:
        yield pa.concat_tables(gathered)
