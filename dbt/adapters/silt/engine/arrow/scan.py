"""ArrowScan: which files of a snapshot to read, and what of them, as a plain value that can be sent elsewhere."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from dbt.adapters.silt.engine.arrow.filters import is_exact
from dbt.adapters.silt.engine.arrow.types import arrow_schema
from dbt.adapters.silt.engine.kernel.errors import InvalidArgumentError, UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
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
        field: as the table has it.
        stored: as the table's files have it, with its physical name and id.
        is_partition: whether the log gives its values.
    """

    field: StructField
    stored: StructField
    is_partition: bool


@dataclass(frozen=True)
class ArrowScan:
    """A read of one version of a table. It can be pickled: `file_read.read_file` reads one of its files anywhere.

    Attributes:
        table: the name, for messages.
        metadata: the table's at that version.
        names: of the columns that are read, spelled as in the table.
        predicate: which rows are read; those for which it is true.
        files: those that may hold such rows, as in the log.
    """

    table: str
    version: int
    metadata: Metadata
    names: tuple[str, ...]
    predicate: Expression
    files: tuple[AddFile, ...]

    @classmethod
    def of(cls, snapshot: Snapshot, names: Sequence[str] | None = None, predicate: Expression = TRUE) -> ArrowScan:
        """The read of some columns of a snapshot, all of them by default.

        Args:
            predicate: rules out files, too.

        Raises:
            ColumnNotFoundError: there is no such column.
            InvalidArgumentError: a column is named twice, or none is.
            UnsupportedFeatureError: Arrow does not have the type of a column.
            UnsupportedStatementError: the predicate may have several outcomes for a row.
        """
        if not is_exact(predicate):
            raise UnsupportedStatementError("a condition that is not exact filters no rows", table=snapshot.table)
        wanted = snapshot.schema.names if names is None else names
        chosen = tuple(snapshot.schema.require(name, snapshot.table).name for name in wanted)
        if len(set(chosen)) < len(chosen) or not chosen:
            raise InvalidArgumentError(
                "`columns` names a column twice, or none", remedy="Name each column once", table=snapshot.table
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
        """The columns that are read, then those that only the predicate needs."""
        needed = (self._schema.require(column.parts[0]).name for column in columns(self.predicate))
        return tuple(self._column(name) for name in dict.fromkeys((*self.names, *needed)))

    @functools.cached_property
    def stored(self) -> StructType:
        """All columns as the table's files have them."""
        return column_mapping.stored_schema(self.metadata)

    @functools.cached_property
    def by_id(self) -> bool:
        """Whether files have the columns by their ids."""
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
