"""Runs CREATE TABLE ... CLONE: creates a table that begins as a copy of another table at a version.

A shallow clone refers to the data files of its source; a deep clone has copies. The transaction identifiers of the
source are not copied: the clone has not done that work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.silt.engine.commands.commit import commit, replaced_whole
from dbt.adapters.silt.engine.commands.tables import copies, stats_columns
from dbt.adapters.silt.engine.commands.target import Outcome, TableLocation, WriteSettings, check_mode, ended_domains
from dbt.adapters.silt.engine.commands.writing.files import Written
from dbt.adapters.silt.engine.kernel.errors import UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.files import data_files
from dbt.adapters.silt.engine.kernel.files.file_guard import Content
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table import active_files
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, DomainMetadata, Metadata, Protocol
from dbt.adapters.silt.engine.kernel.table.column_mapping import MAX_COLUMN_ID, max_column_id
from dbt.adapters.silt.engine.kernel.table.features import check_writable, merged, needed_features, upgraded
from dbt.adapters.silt.engine.kernel.table.paths import decode_path
from dbt.adapters.silt.engine.kernel.table.properties import (
    ENABLEMENT_TIMESTAMP,
    ENABLEMENT_VERSION,
    FEATURE_PREFIX,
    TableProperties,
    checked,
)
from dbt.adapters.silt.engine.kernel.table.schema import StructType
from dbt.adapters.silt.engine.kernel.transaction import row_tracking
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet, as_strings
from dbt.adapters.silt.engine.sql.ast import CreateMode

OPERATION: Final = "CLONE"

_COPIED_DOMAINS = frozenset(("delta.clustering",))
_IN_COMMIT_TIMESTAMPS = "delta.enableInCommitTimestamps"


@dataclass(frozen=True)
class CloneSource:
    """The table to clone, pinned at a version, with the name that the history shows."""

    name: str
    log: DeltaLog
    snapshot: Snapshot


@dataclass(frozen=True)
class CloneOptions:
    """The options of the statement; `properties` override the source's properties."""

    shallow: bool
    properties: Mapping[str, str] = field(default_factory=dict)


def clone(
    location: TableLocation, source: CloneSource, options: CloneOptions, mode: CreateMode, settings: WriteSettings
) -> Outcome:
    """Creates a clone, or replaces a table with a clone; runs no Spark job.

    If a shallow clone is created again from the same source, the files that it already refers to are kept.

    Raises:
        RelationExistsError, RelationNotFoundError: if `mode` does not allow the clone.
        UnsupportedStatementError: if the table is its own source, or the clone would change the table's column mapping.
        UnsupportedFeatureError: if the clone needs a feature that this engine does not write.
        DataFileMissingError: if a file that a deep clone copies is missing.
        DataFileChangedError: if a file of the source differs from the file that its log names.
        ExternalPathError: if a shallow clone would refer to files in a location that the table may not use.
        ConcurrentCreateError, ConcurrentModificationError: if another writer created or changed the table meanwhile.
    """
    base, log = location.base, location.log
    if base is not None and mode is CreateMode.CREATE_IF_NOT_EXISTS:
        return Outcome(OPERATION, log.name, base.version, attempts=0)
    check_mode(location, mode)
    _check_source(location, source)
    origin = source.snapshot
    content = Content(origin.metadata)
    source.log.guard.check(source.log.store, origin.files, content, source.name, origin.version)
    metadata, protocol = _described(location, origin, options)
    check_writable(protocol, log.name, metadata)
    there = None if base is None else base.files
    written: tuple[Written, ...] = ()
    if options.shallow:
        adds, removed = _difference(_referred(source, log), there)
    else:
        written = (copies.copied(source.log.store, source.snapshot, log, settings.progress),)
        adds, removed = written[0].adds, there
    removes = () if base is None or removed is None else tuple(base.add_files(removed))
    now = log.clock.now_ms()
    changes = Changes(
        operation=_operation(source, options, adds, removes),
        adds=adds,
        removes=tuple(add.remove(now) for add in removes),
        metadata=metadata,
        protocol=None if base is not None and protocol == base.protocol else protocol,
        domains=_domains(source.snapshot, base),
    )
    reads = ReadSet(whole_table=base is not None, transactions=base is not None)
    committed = commit(log, base, replaced_whole(base, changes, settings), reads, settings, written)
    return Outcome(
        OPERATION,
        log.name,
        committed.version,
        files_added=len(adds),
        files_removed=len(removes),
        attempts=committed.attempts,
    )


def _check_source(location: TableLocation, source: CloneSource) -> None:
    if source.log.store.root == location.log.store.root:
        raise UnsupportedStatementError(
            "a table cannot be cloned onto itself",
            table=location.log.name,
            remedy="Use RESTORE TABLE to bring an earlier version back",
        )
    if location.base is None:
        return
    there, wanted = (each.properties.column_mapping_mode for each in (location.base, source.snapshot))
    if there != wanted:
        raise UnsupportedStatementError(
            f"the column mapping mode of the table is `{there}`, that of {source.name} is `{wanted}`",
            table=location.log.name,
            remedy="Drop the table first, or clone under another name",
        )


def _described(location: TableLocation, source: Snapshot, options: CloneOptions) -> tuple[Metadata, Protocol]:
    """Returns the source's metadata with the table's own id, name and description, as in delta-spark."""
    base, clock = location.base, location.log.clock
    asked = checked(options.properties)
    kept = {key: value for key, value in asked.items() if not key.startswith(FEATURE_PREFIX)}
    metadata = Metadata(
        id=clock.new_id() if base is None else base.metadata.id,
        schema_string=source.metadata.schema_string,
        partition_columns=source.metadata.partition_columns,
        configuration=_configuration(source, base) | kept,
        name=None if base is None else base.metadata.name,
        description=None if base is None else base.metadata.description,
        created_time=clock.now_ms(),
        format_options=source.metadata.format_options,
    )
    _check_mapping_kept(location, source, metadata)
    metadata = row_tracking.enabled(metadata, (), clock.new_id, location.log.name)
    protocol = source.protocol if base is None else merged(base.protocol, source.protocol)
    schema = StructType.from_json(metadata.schema_string)
    stats_columns.check(asked, schema, location.log.name)
    return metadata, upgraded(protocol, needed_features(schema, {**metadata.configuration, **asked}))


def _configuration(source: Snapshot, base: Snapshot | None) -> dict[str, str]:
    """Returns the source's properties; the start of in-commit timestamps and the columns of row ids are the table's."""
    configuration = dict(source.metadata.configuration)
    timestamps = (ENABLEMENT_VERSION, ENABLEMENT_TIMESTAMP, *(() if base is None else (_IN_COMMIT_TIMESTAMPS,)))
    own = (*timestamps, *row_tracking.COLUMN_NAMES)
    kept = {} if base is None else {k: v for k, v in base.metadata.configuration.items() if k in own}
    configuration = {key: value for key, value in configuration.items() if key not in own} | kept
    if base is not None and MAX_COLUMN_ID in configuration:
        configuration[MAX_COLUMN_ID] = str(max(map(max_column_id, (base.metadata, source.metadata))))
    return configuration


def _check_mapping_kept(location: TableLocation, source: Snapshot, metadata: Metadata) -> None:
    if TableProperties(metadata.configuration).column_mapping_mode != source.properties.column_mapping_mode:
        raise UnsupportedStatementError(
            "a clone has the column mapping mode of its source",
            table=location.log.name,
            remedy="Leave `delta.columnMapping.mode` out, and alter the clone afterwards",
        )


def _referred(source: CloneSource, log: DeltaLog) -> tuple[AddFile, ...]:
    """Returns the source's files as a shallow clone refers to them; checks that the clone may refer to each of them."""
    adds = copies.referred(source.log.store.root, source.snapshot.add_files())
    for add in adds:
        data_files.check_reach(log.store, decode_path(add.path))
    return adds


def _difference(adds: tuple[AddFile, ...], there: pa.Table | None) -> tuple[tuple[AddFile, ...], pa.Table | None]:
    """Returns the files that the table lacks, and the files of the table to remove."""
    if there is None:
        return adds, None
    wanted = {active_files.file_key(add.path, add.deletion_vector): add for add in adds}
    held = active_files.keys_of(there).to_pylist()
    is_kept = pa.array([key in wanted for key in held], pa.bool_())
    present = set(held)
    new = tuple(add for key, add in wanted.items() if key not in present)
    return new, there.filter(pc.invert(is_kept))


def _domains(source: Snapshot, base: Snapshot | None) -> tuple[DomainMetadata, ...]:
    own = tuple(domain for name, domain in source.domains.items() if name in _COPIED_DOMAINS)
    ended = () if base is None else ended_domains(base)
    names = {domain.domain for domain in own}
    return (*own, *(domain for domain in ended if domain.domain not in names))


def _operation(
    source: CloneSource, options: CloneOptions, adds: tuple[AddFile, ...], removes: tuple[AddFile, ...]
) -> Operation:
    copied = () if options.shallow else adds
    metrics = {
        "sourceTableSize": source.snapshot.size_in_bytes,
        "sourceNumOfFiles": source.snapshot.num_files,
        "numRemovedFiles": len(removes),
        "numCopiedFiles": len(copied),
        "removedFilesSize": sum(add.size for add in removes),
        "copiedFilesSize": sum(add.size for add in copied),
    }
    parameters = {"source": source.name, "sourceVersion": source.snapshot.version}
    return Operation(OPERATION, parameters, as_strings(metrics))
