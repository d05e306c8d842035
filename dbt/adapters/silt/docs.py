"""What `dbt docs generate` shows of a table or view: its columns, comments and figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from dbt_common.contracts.metadata import CatalogTable, ColumnMetadata, StatsItem, TableMetadata

from dbt.adapters.silt.column import SiltColumn
from dbt.adapters.silt.engine.catalog.names import RelationName
from dbt.adapters.silt.engine.kernel.snapshot import Snapshot

_NUM_RECORDS = r'"numRecords"\s*:\s*(?P<rows>[0-9]+)'


@dataclass(frozen=True)
class RelationDocs:
    """A relation as the catalog artifact has it.

    Attributes:
        kind: "table" or "view".
        stats: figures of a table; none of a view.
    """

    name: RelationName
    kind: str
    comment: str | None
    columns: Sequence[SiltColumn]
    stats: Sequence[StatsItem] = ()

    def rows(self) -> list[dict[str, Any]]:
        """One row a column, with the names of dbt's catalog query."""
        head: dict[str, Any] = {
            "table_database": self.name.database,
            "table_schema": self.name.schema,
            "table_name": self.name.identifier,
            "table_type": self.kind,
            "table_comment": self.comment,
            "table_owner": None,
        }
        stats = {f"stats:{stat.id}:{part}": getattr(stat, part) for stat in self.stats for part in _STAT_PARTS}
        return [
            {
                **head,
                "column_name": column.name,
                "column_index": index,
                "column_type": column.dtype,
                "column_comment": column.comment,
                **stats,
            }
            for index, column in enumerate(self.columns, start=1)
        ]

    def catalog_table(self) -> CatalogTable:
        columns = {
            column.name: ColumnMetadata(type=column.dtype, index=index, name=column.name, comment=column.comment)
            for index, column in enumerate(self.columns, start=1)
        }
        stats = {stat.id: stat for stat in self.stats}
        stats["has_stats"] = StatsItem(
            id="has_stats",
            label="Has Stats?",
            value=bool(self.stats),
            include=False,
            description="Indicates whether there are statistics for this table",
        )
        metadata = TableMetadata(
            type=self.kind,
            schema=self.name.schema,
            name=self.name.identifier,
            database=self.name.database,
            comment=self.comment,
        )
        return CatalogTable(metadata=metadata, columns=columns, stats=stats)


_STAT_PARTS = ("label", "value", "description", "include")


def table_stats(snapshot: Snapshot) -> list[StatsItem]:
    """The figures of a table, from its log: bytes, rows where all files tell them, files, version, last change."""
    rows = count_rows(snapshot.files)
    changed = datetime.fromtimestamp(snapshot.timestamp / 1000, timezone.utc)
    figures: list[tuple[str, str, Any, str]] = [
        ("bytes", "Size", snapshot.size_in_bytes, "Bytes of the data files"),
        ("files", "Files", snapshot.num_files, "Number of data files"),
        ("version", "Version", snapshot.version, "Version of the table's log"),
        ("last_modified", "Last modified", f"{changed:%Y-%m-%d %H:%M:%S} UTC", "Time of the last commit"),
    ]
    if rows is not None:
        figures.insert(0, ("rows", "Rows", rows, "Number of rows"))
    return [
        StatsItem(id=id, label=label, value=value, include=True, description=text) for id, label, value, text in figures
    ]


def count_rows(files: pa.Table) -> int | None:
    """The rows of a table's files by their statistics, without those that deletion vectors hide; None if unknown."""
    counts = pc.struct_field(pc.extract_regex(files["stats"], pattern=_NUM_RECORDS), "rows")
    if counts.null_count:
        return None
    hidden = sum(vector["cardinality"] for vector in files["deletion_vector"].to_pylist() if vector is not None)
    return (pc.sum(counts.cast(pa.int64())).as_py() or 0) - hidden
