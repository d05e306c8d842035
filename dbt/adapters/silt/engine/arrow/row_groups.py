"""Skips the row groups of a file that a predicate rules out by the statistics in the file's footer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from dbt.adapters.silt.engine.arrow.casts import position
from dbt.adapters.silt.engine.kernel.files import footers
from dbt.adapters.silt.engine.kernel.files.footers import ColumnChunks
from dbt.adapters.silt.engine.kernel.files.statistics import TRUSTED, document
from dbt.adapters.silt.engine.kernel.scan.skipping import might_match
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, Metadata
from dbt.adapters.silt.engine.kernel.table.expressions import Column, Expression, columns
from dbt.adapters.silt.engine.kernel.table.schema import ArrayType, DataType, MapType, StructType

Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class _Leaf:
    """A column that a predicate names.

    Attributes:
        physical: path in statistics.
        in_file: path in the file; None if the file lacks the column.
    """

    physical: Path
    in_file: Path | None
    type: DataType


@dataclass(frozen=True)
class RowGroups:
    """The row groups of a file of a table.

    Attributes:
        stored: the table's columns with the names and ids in files, in the table's order.
        by_id: whether columns in files are found by ids.
    """

    footer: pq.FileMetaData
    metadata: Metadata
    stored: StructType
    by_id: bool

    def matching(self, file: AddFile, predicate: Expression) -> list[int]:
        """Returns the row groups that may have a row for which the predicate is true."""
        groups = list(range(self.footer.num_row_groups))
        found = (leaf for column in set(columns(predicate)) for leaf in self._leaf(column))
        leaves = sorted(found, key=lambda leaf: leaf.physical)
        if not leaves:
            return groups
        known = [replace(file, stats=self._statistics(group, leaves), tags=TRUSTED) for group in groups]
        may = might_match(known, self.metadata, predicate)
        return [group for group, matches in zip(groups, may, strict=True) if matches]

    def _leaf(self, column: Column) -> Iterator[_Leaf]:
        """Yields the column with its paths, or nothing if it has no statistics of its own."""
        wanted: DataType = StructType.from_json(self.metadata.schema_string)
        stored: DataType = self.stored
        held: Sequence[pa.Field] | None = list(self.footer.schema.to_arrow_schema())
        physical, in_file = [], []
        for part in column.parts:
            if not isinstance(wanted, StructType) or not isinstance(stored, StructType):
                return
            at = [name.lower() for name in wanted.names].index(part.lower())
            of_file = stored.fields[at]
            index = None if held is None else position(held, of_file, self.by_id)
            physical.append(wanted.fields[at].physical_name)
            wanted, stored = wanted.fields[at].type, of_file.type
            if held is None or index is None:
                held = None
                continue
            in_file.append(held[index].name)
            kind = held[index].type
            held = [kind.field(inner) for inner in range(kind.num_fields)] if pa.types.is_struct(kind) else []
        if not isinstance(wanted, StructType | ArrayType | MapType):
            yield _Leaf(tuple(physical), None if held is None else tuple(in_file), wanted)

    def _statistics(self, group: int, leaves: Sequence[_Leaf]) -> str:
        """Returns the statistics of a row group, in the form of a file's statistics in the log."""
        rows = self.footer.row_group(group).num_rows
        found = footers.read(self.footer, [leaf.in_file for leaf in leaves if leaf.in_file is not None], [group])
        texts: dict[str, dict[Path, str]] = {"minValues": {}, "maxValues": {}, "nullCount": {}}
        for leaf in leaves:
            for name, text in _entries(leaf, rows, found.get(leaf.in_file or ())):
                if text is not None:
                    texts[name][leaf.physical] = text
        parts = [f'"{name}":{document(values)}' for name, values in texts.items() if values]
        return "{" + ",".join([f'"numRecords":{rows}', *parts]) + "}"


def _entries(leaf: _Leaf, rows: int, chunks: ColumnChunks | None) -> Iterator[tuple[str, str | None]]:
    """Yields the statistics of a column as JSON literals; in a file without the column all rows are null."""
    if leaf.in_file is None:
        yield "nullCount", str(rows)
    elif chunks is not None:
        yield "minValues", chunks.literal(chunks.minimum, leaf.type, _whole)
        yield "maxValues", chunks.literal(chunks.maximum, leaf.type, _whole)
        yield "nullCount", None if chunks.null_count is None else str(chunks.null_count)


def _whole(text: str) -> str:
    return text
