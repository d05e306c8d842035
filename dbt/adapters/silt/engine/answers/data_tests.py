"""Answers dbt's data tests by Arrow: counts the rows that fail not_null, unique, accepted_values and relationships."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.silt.engine.answers import data_test_text as texts
from dbt.adapters.silt.engine.answers.data_test_text import Accepted, DataTest, NotNull, Related, Rows, Unique
from dbt.adapters.silt.engine.answers.quick import MOST_BYTES, Quick, QuickAnswer, Source, is_plain
from dbt.adapters.silt.engine.arrow.read import TableRead
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.rows.scan import ArrowScan
from dbt.adapters.silt.engine.kernel.scan.consistent_cut import consistent_cut
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE, And, Expression
from dbt.adapters.silt.engine.kernel.table.schema import DataType, DecimalType, StructField
from dbt.adapters.silt.engine.sql.ast import Query
from dbt.adapters.silt.engine.sql.conditions.exact import exact_predicate

_WHOLE: Final = frozenset(("byte", "short", "integer", "long"))
_COMPARED: Final = _WHOLE | {"boolean", "string", "date", "timestamp", "timestamp_ntz"}
"""The types whose values are equal in Arrow if they are equal in Spark; not floating-point numbers."""


@dataclass(frozen=True)
class PreparedTest:
    """The query of a data test, and the rows and columns of tables that answer it."""

    test: DataTest
    failing: NotNull | Unique | Accepted | Related
    rows: Column
    parent: Column | None = None

    @property
    def tables(self) -> dict[DeltaLog, Snapshot]:
        """The tables that it reads."""
        return {each.log: each.snapshot for each in (self.rows, self.parent) if each is not None}

    def answer(self, most: int | None = None) -> QuickAnswer | None:
        """Returns the row of the result, unless Spark has to run the query; raises as `Quick.answer`."""
        if self.rows.size + (0 if self.parent is None else self.parent.size) > MOST_BYTES:
            return None
        count = self._count()
        values = (count, self.test.warn.of(count), self.test.error.of(count))
        columns = [
            pa.array([value], kind) for value, kind in zip(values, (pa.int64(), pa.bool_(), pa.bool_()), strict=True)
        ]
        return QuickAnswer(pa.table(columns, names=list(self.test.names)).slice(0, most), Source.FILES)

    def _count(self) -> int:
        if isinstance(self.failing, NotNull):
            return self.rows.count()
        values = self.rows.values()
        if self.parent is not None:
            return _count_true(pc.invert(pc.is_in(values, self.parent.values())))
        counts = pc.value_counts(values).field("counts")
        return len(counts) if isinstance(self.failing, Accepted) else _count_true(pc.greater(counts, 1))


@dataclass(frozen=True)
class Column:
    """A column of a table, in the rows for which a condition is true."""

    log: DeltaLog
    snapshot: Snapshot
    field: StructField
    predicate: Expression

    @property
    def size(self) -> int:
        """The bytes of the files that may hold such rows."""
        return sum(file.size for file in self._read.scan.files)

    def values(self) -> pa.ChunkedArray:
        """Reads the values."""
        values = self._read.whole().column(0)
        return values.cast(pa.int64()) if pa.types.is_integer(values.type) else values

    def count(self) -> int:
        """Counts the rows."""
        return sum(batch.num_rows for batch in self._read.batches())

    @property
    def _read(self) -> TableRead:
        scan = ArrowScan.of(self.snapshot, [self.field.name], self.predicate)
        return TableRead(self.log, self.snapshot, scan)


def prepared_test(quick: Quick, query: Query) -> PreparedTest | None:
    """Returns the prepared query, or None if it is not a data test that Arrow can answer exactly.

    Raises:
        SiltError: as `Quick.prepared`.
    """
    test = texts.data_test(query.text)
    failing = None if test is None else texts.failing_rows(test.failing)
    if test is None or failing is None:
        return None
    named = [failing.rows, *([failing.parent] if isinstance(failing, Related) else [])]
    logs = [quick.names.find(rows.table) for rows in named]
    found = [log for log in logs if isinstance(log, DeltaLog)]
    if len(found) < len(logs):
        return None
    cut = consistent_cut(found)
    columns = [_column(quick, rows, log, cut[log]) for rows, log in zip(named, found, strict=True)]
    rows = _restricted(columns[0], failing, quick.time_zone)
    parent = columns[1] if len(columns) > 1 else None
    is_exact = isinstance(failing, NotNull) or _is_comparable(
        rows.field, rows.field if parent is None else parent.field
    )
    return PreparedTest(test, failing, rows, parent) if is_exact else None


def _column(quick: Quick, rows: Rows, log: DeltaLog, snapshot: Snapshot) -> Column:
    field = snapshot.schema.require(rows.column, snapshot.table)
    qualifier = tuple(log.name.split("."))
    where = TRUE if rows.where is None else exact_predicate(rows.where, snapshot.schema, [qualifier], quick.time_zone)
    return Column(log, snapshot, field, where)


def _restricted(column: Column, failing: NotNull | Unique | Accepted | Related, time_zone: str) -> Column:
    """Returns the column with the condition of the test."""
    name = quote(column.field.name)
    condition = f"{name} is not null"
    if isinstance(failing, NotNull):
        condition = f"{name} is null"
    if isinstance(failing, Accepted):
        condition = f"{name} not in {failing.values}"
    predicate = exact_predicate(condition, column.snapshot.schema, [], time_zone)
    return replace(column, predicate=predicate if column.predicate == TRUE else And((column.predicate, predicate)))


def _is_comparable(field: StructField, other: StructField) -> bool:
    """Returns whether Spark compares the values of both columns without changing them, as Arrow does."""
    are_whole = {_name(field.type), _name(other.type)} <= _WHOLE
    return (are_whole or field.type == other.type) and _is_compared(field.type) and is_plain(field) and is_plain(other)


def _is_compared(kind: DataType) -> bool:
    return isinstance(kind, DecimalType) or _name(kind) in _COMPARED


def _name(kind: DataType) -> str:
    return str(getattr(kind, "name", ""))


def _count_true(flags: pa.Array | pa.ChunkedArray) -> int:
    return int(pc.sum(flags).as_py() or 0)
