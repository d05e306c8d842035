"""Assigns row ids: every added file gets ids for its rows, and the version of the commit that adds it.

New ids are above the table's high-water mark, so they depend on earlier commits and are assigned again in each attempt.
If `delta.enableRowTracking` is true, rows that are copied or changed keep their ids: files store them in columns that
are not part of the table's schema (`materialized_columns`). Otherwise such rows get new ids, and the commit records
that. Source: the Delta specification, section "Row Tracking".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from dbt.adapters.silt.engine.kernel import foreign_json
from dbt.adapters.silt.engine.kernel.errors import CorruptLogError, InternalError, UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.files import stats_json
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, DomainMetadata, Json, Metadata
from dbt.adapters.silt.engine.kernel.table.features import has_feature
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes

ROW_TRACKING_DOMAIN: Final = "delta.rowTracking"
PRESERVED_TAG: Final = "delta.rowTracking.preserved"

_MARK = "rowIdHighWaterMark"
_SUSPENDED = "delta.rowTrackingSuspended"
_ROW_ID_COLUMN = "delta.rowTracking.materializedRowIdColumnName"
_ROW_VERSION_COLUMN = "delta.rowTracking.materializedRowCommitVersionColumnName"
_MATERIALIZED: Final[Mapping[str, str]] = {
    _ROW_ID_COLUMN: "_row-id-col-",
    _ROW_VERSION_COLUMN: "_row-commit-version-col-",
}

COLUMN_NAMES: Final = tuple(_MATERIALIZED)
"""The properties that name `materialized_columns`; the names are unique to each table."""


def tracks_rows(base: Snapshot | None, changes: Changes) -> bool:
    """Returns whether the files of a commit of these changes must have row ids."""
    protocol = changes.protocol or (None if base is None else base.protocol)
    metadata = changes.metadata or (None if base is None else base.metadata)
    if protocol is None or metadata is None or not has_feature(protocol, "rowTracking"):
        return False
    return metadata.configuration.get(_SUSPENDED, "false").lower() != "true"


def keeps_row_ids(snapshot: Snapshot | None) -> bool:
    """Returns whether rows of the table keep their ids when they are copied or changed."""
    if snapshot is None or not has_feature(snapshot.protocol, "rowTracking"):
        return False
    return materialized_columns(snapshot.metadata) is not None


def materialized_columns(metadata: Metadata) -> tuple[str, str] | None:
    """Returns the names in data files of the columns of row ids and row commit versions, or None without such columns.

    If a file lacks the columns, or a row has null in them, the log determines the ids.
    """
    names = (metadata.configuration.get(_ROW_ID_COLUMN), metadata.configuration.get(_ROW_VERSION_COLUMN))
    if not TableProperties(metadata.configuration).enable_row_tracking or names[0] is None or names[1] is None:
        return None
    return names[0], names[1]


def with_row_ids(base: Snapshot | None, changes: Changes, version: int) -> Changes:
    """Adds the missing row ids and the new high-water mark to the changes of a table that tracks rows.

    Args:
        base: the base, with the domains of the winners before the attempt.
        version: the version of the commit.

    Raises:
        CorruptLogError: if the table's high-water mark cannot be read.
    """
    mark = before = high_water_mark({} if base is None else base.domains)
    adds = []
    for add in changes.adds:
        if add.base_row_id is None:
            first, mark = mark + 1, mark + _num_records(add)
            add = replace(add, base_row_id=first, default_row_commit_version=version)
        else:
            # A file that is restored, or comes from another table, keeps its ids.
            mark = max(mark, add.base_row_id + _num_records(add) - 1)
        adds.append(add)
    others = tuple(domain for domain in changes.domains if domain.domain != ROW_TRACKING_DOMAIN)
    if mark > before:
        marked = DomainMetadata(ROW_TRACKING_DOMAIN, json.dumps({_MARK: mark}, separators=(",", ":")))
        others = (*others, marked)
    return replace(changes, adds=tuple(adds), domains=others)


def preserved_tags(base: Snapshot | None, changes: Changes, tags: Mapping[str, Json]) -> dict[str, Json]:
    """Adds the `commitInfo` tag that records whether the rows that the commit copies or changes keep their ids."""
    removed = {remove.path for remove in changes.removes}
    copies = bool(removed) and any(add.path not in removed for add in changes.adds)
    return {**tags, PRESERVED_TAG: str(keeps_row_ids(base) or not copies).lower()}


def high_water_mark(domains: Mapping[str, DomainMetadata]) -> int:
    """Returns the highest row id that was ever assigned in the table, or -1 if no row has had an id.

    Raises:
        CorruptLogError: if the domain's configuration does not follow the specification.
    """
    domain = domains.get(ROW_TRACKING_DOMAIN)
    if domain is None:
        return -1
    try:
        return int(foreign_json.loads(domain.configuration)[_MARK])
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptLogError(f"the domain {ROW_TRACKING_DOMAIN} cannot be read ({error!r})") from error


def enabled(metadata: Metadata, files: Iterable[AddFile], new_id: Callable[[], str], table: str) -> Metadata:
    """Adds names for the columns of materialised ids to the metadata, if `delta.enableRowTracking` is true.

    Args:
        files: the files that remain in the table.

    Raises:
        UnsupportedStatementError: if it is enabled for a table with files whose rows have no ids.
    """
    if not TableProperties(metadata.configuration).enable_row_tracking:
        return metadata
    missing = {key: f"{name}{new_id()}" for key, name in _MATERIALIZED.items() if key not in metadata.configuration}
    if missing and any(file.base_row_id is None for file in files):
        raise UnsupportedStatementError(
            "`delta.enableRowTracking` cannot be enabled: the table has files whose rows have no ids",
            remedy="Create the table again with the property",
            table=table,
        )
    return replace(metadata, configuration={**metadata.configuration, **missing})


def with_same_columns(metadata: Metadata, before: Metadata) -> Metadata:
    """Returns the metadata of a table that replaces another, with the same names for the columns of materialised ids.

    With other names, the table would have other properties although no statement has changed them.
    """
    if not TableProperties(metadata.configuration).enable_row_tracking:
        return metadata
    names = {key: value for key, value in before.configuration.items() if key in COLUMN_NAMES}
    return replace(metadata, configuration={**names, **metadata.configuration})


def _num_records(add: AddFile) -> int:
    """Returns the number of rows in the file, including rows that its deletion vector deletes."""
    recorded = stats_json.record_count(add.stats)
    if recorded is None:
        raise InternalError(f"{add.path} has no number of rows, which a table that tracks rows needs")
    return recorded
