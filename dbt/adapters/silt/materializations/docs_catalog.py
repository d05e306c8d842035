"""Collects the columns, comments and statistics of a table or view for `dbt docs generate`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import agate
from dbt_common.clients.agate_helper import Integer
from dbt_common.contracts.metadata import CatalogTable, ColumnMetadata, StatsItem, TableMetadata

from dbt.adapters.silt.column import SiltColumn
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationEntry, RelationKind, RelationName
from dbt.adapters.silt.engine.kernel.clock import utc_moment
from dbt.adapters.silt.engine.kernel.errors import RelationNotFoundError
from dbt.adapters.silt.engine.kernel.files.stats_json import row_count
from dbt.adapters.silt.engine.kernel.log.commit_search import last_data_change
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.keys import table_keys


@dataclass(frozen=True)
class RelationDocs:
    """A relation of the catalog artifact.

    Attributes:
        kind: "table" or "view".
        stats: statistics of a table; empty for a view.
    """

    name: RelationName
    kind: str
    comment: str | None
    columns: Sequence[SiltColumn]
    stats: Sequence[StatsItem] = ()

    def rows(self) -> list[dict[str, Any]]:
        """Returns a row for each column, with the names of dbt's catalog query."""
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


def describe(catalog: Catalog, entry: RelationEntry, columns: Sequence[SiltColumn]) -> RelationDocs:
    """Collects the documentation of a relation with the given columns.

    Raises:
        SiltError: if its log or its view document cannot be read.
    """
    if entry.kind is RelationKind.VIEW:
        return RelationDocs(entry.name, "view", catalog.view(entry.name).comment, columns)
    log = catalog.table(entry.name)
    snapshot = log.snapshot()
    stats = table_stats(snapshot, log.committed_at(snapshot))
    return RelationDocs(entry.name, "table", snapshot.metadata.description, columns, stats)


def catalog_rows(relations: Sequence[RelationDocs]) -> agate.Table:
    """Returns dbt's catalog table: a row for each column of each relation."""
    types = _HEAD | {
        f"stats:{id}:{part}": _VALUES[id] if part == "value" else kind
        for id in _VALUES
        for part, kind in _STAT_PARTS.items()
    }
    rows = [[row.get(name) for name in types] for each in relations for row in each.rows()]
    return agate.Table(rows, list(types), list(types.values()))


def changed_at(catalog: Catalog, name: RelationName) -> datetime:
    """Returns the time when rows of a table last changed.

    Raises:
        RelationNotFoundError: if the table does not exist, or is a view.
    """
    entry = catalog.find(name)
    if entry is None:
        raise RelationNotFoundError(
            "the table does not exist", table=str(name), remedy="Check the source's database, schema and identifier"
        )
    if entry.kind is RelationKind.VIEW:
        raise RelationNotFoundError(
            "it is a view, and a view has no time of last change",
            table=str(name),
            remedy="Give the source a `loaded_at_field` or a `loaded_at_query`",
        )
    return time_of_change(last_data_change(catalog.table(name)))


def time_of_change(milliseconds: int) -> datetime:
    """Returns a commit's time, or the latest datetime if a wrong time is outside the years 1 to 9999."""
    return utc_moment(milliseconds) or datetime.max.replace(tzinfo=timezone.utc)


def table_stats(snapshot: Snapshot, committed_ms: int) -> list[StatsItem]:
    """Returns statistics of a table from its log: rows if all files state them, bytes, files, version and more.

    Args:
        committed_ms: the version's commit time, in milliseconds since 1970-01-01 UTC.
    """
    changed = time_of_change(committed_ms)
    keys = "; ".join(key.sql for key in table_keys(snapshot.metadata.configuration).values())
    figures: list[tuple[str, str, Any, str]] = [
        ("rows", "Rows", row_count(snapshot.files), "Number of rows"),
        ("bytes", "Size", snapshot.size_in_bytes, "Bytes of the data files"),
        ("files", "Files", snapshot.num_files, "Number of data files"),
        ("version", "Version", snapshot.version, "Version of the table's log"),
        ("last_modified", "Last modified", f"{changed:%Y-%m-%d %H:%M:%S} UTC", "Time of the last commit"),
        ("keys", "Keys", keys or None, "Declared keys; commits check enforced keys"),
    ]
    return [
        StatsItem(id=id, label=label, value=value, include=True, description=text)
        for id, label, value, text in figures
        if value is not None
    ]


# No `null_values`: otherwise agate would read a comment such as "n/a" as null.
_TEXT = agate.Text(null_values=(), cast_nulls=False)
_HEAD: dict[str, agate.DataType] = {
    "table_database": _TEXT,
    "table_schema": _TEXT,
    "table_name": _TEXT,
    "table_type": _TEXT,
    "table_comment": _TEXT,
    "table_owner": _TEXT,
    "column_name": _TEXT,
    "column_index": Integer(),
    "column_type": _TEXT,
    "column_comment": _TEXT,
}
_STAT_PARTS: dict[str, agate.DataType] = {
    "label": _TEXT,
    "value": _TEXT,
    "description": _TEXT,
    "include": agate.Boolean(),
}
_VALUES: dict[str, agate.DataType] = {
    "rows": Integer(),
    "bytes": Integer(),
    "files": Integer(),
    "version": Integer(),
    "last_modified": _TEXT,
    "keys": _TEXT,
}
"""The type of each figure's value."""
