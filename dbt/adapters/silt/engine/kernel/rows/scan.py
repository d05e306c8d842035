"""ArrowScan: the files, columns and rows of a snapshot to read, as a value that another process can use."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from dbt.adapters.silt.engine.kernel.errors import InvalidArgumentError, UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.rows.filters import is_exact
from dbt.adapters.silt.engine.kernel.rows.types import arrow_schema
from dbt.adapters.silt.engine.kernel.scan import skipping
from dbt.adapters.silt.engine.kernel.table import column_mapping
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, Metadata
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE, Expression, columns
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties
from dbt.adapters.silt.engine.kernel.table.schema import StructField, StructType


@dataclass(frozen=True)
class ScanColumn:
    """A column to read.

    Attributes:
        field: column in the table.
        stored: column in the table's files, with its physical name and id.
        is_partition: whether its values are in the log.
    """

    field: StructField
    stored: StructField
    is_partition: bool


@dataclass(frozen=True)
class ArrowScan:
    """A read of a version of a table. It can be pickled: `file_read.read_file` reads its files in any process.

    Attributes:
        table: name for messages.
        metadata: metadata of the table at that version.
        names: names of the columns to read, spelled as in the table.
        predicate: condition of the rows to read.
        files: files that may hold such rows, as in the log.
    """

    table: str
    version: int
    metadata: Metadata
    names: tuple[str, ...]
    predicate: Expression
    files: tuple[AddFile, ...]

    @classmethod
    def of(cls, snapshot: Snapshot, names: Sequence[str] | None = None, predicate: Expression = TRUE) -> ArrowScan:
        """Returns the read of some columns of a snapshot, by default all.

        Args:
            predicate: condition, which also rules out files.

        Raises:
            ColumnNotFoundError: if a column does not exist.
            InvalidArgumentError: if a column is named twice, or no column is named.
            UnsupportedFeatureError: if Arrow does not have the type of a column.
            UnsupportedStatementError: if the predicate may have several outcomes for a row, or the table lacks columns.
        """
        if not is_exact(predicate):
            raise UnsupportedStatementError("a condition that is not exact cannot filter rows", table=snapshot.table)
        wanted = snapshot.schema.names if names is None else names
        if names is None and not wanted:
            raise UnsupportedStatementError(
                "the table has no columns, and Arrow has no rows without columns",
                remedy="Count its rows in SQL, or add a column",
                table=snapshot.table,
            )
        chosen = tuple(snapshot.schema.require(name, snapshot.table).name for name in wanted)
        if len(set(chosen)) < len(chosen) or not chosen:
            raise InvalidArgumentError(
                "`columns` is empty or names a column twice", remedy="Name each column only once", table=snapshot.table
            )
        files = tuple(snapshot.add_files(skipping.prune(snapshot, predicate)))
        scan = cls(snapshot.table, snapshot.version, snapshot.metadata, chosen, predicate, files)
        arrow_schema((column.field for column in scan.read_columns), snapshot.table)
        return scan

    @functools.cached_property
    def schema(self) -> pa.Schema:
        """The columns that are read."""
        return arrow_schema((self._schema.require(name) for name in self.names), self.table)

    @functools.cached_property
    def read_columns(self) -> tuple[ScanColumn, ...]:
        """The columns that are read, then the columns that only the predicate needs."""
        needed = (self._schema.require(column.parts[0]).name for column in columns(self.predicate))
        return tuple(self._column(name) for name in dict.fromkeys((*self.names, *needed)))

    @functools.cached_property
    def stored(self) -> StructType:
        """All columns with the names and ids in the table's files."""
        return column_mapping.stored_schema(self.metadata)

    @functools.cached_property
    def by_id(self) -> bool:
        """Whether columns in files are found by ids."""
        return TableProperties(self.metadata.configuration).column_mapping_mode == "id"

    @functools.cached_property
    def _schema(self) -> StructType:
        return StructType.from_json(self.metadata.schema_string)

    @functools.cached_property
    def _partitioning(self) -> frozenset[str]:
        return frozenset(name.lower() for name in self.metadata.partition_columns)

    def _column(self, name: str) -> ScanColumn:
        pairs: Iterator[tuple[StructField, StructField]] = zip(self._schema, self.stored, strict=True)
        field, stored = next(pair for pair in pairs if pair[0].name == name)
        return ScanColumn(field, stored, name.lower() in self._partitioning)
