"""Runs CREATE TABLE ... CLONE: creates a table that begins as a copy of another table at a version.

A shallow clone refers to the data files of its source; a deep clone has copies. The transaction identifiers of the
source are not copied: the clone has not done that work.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.silt.engine.commands.commit import commit, discarded_on_error, replaced_whole
from dbt.adapters.silt.engine.commands.tables import stats_columns
from dbt.adapters.silt.engine.commands.target import Outcome, TableLocation, WriteSettings, check_mode, copied_domains
from dbt.adapters.silt.engine.commands.writing.files import Written
from dbt.adapters.silt.engine.kernel.errors import UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.files import data_files, file_guard, z85
from dbt.adapters.silt.engine.kernel.files.deletion_vectors import IN_FILE, IN_FILE_OF_ABSOLUTE_PATH, file_name
from dbt.adapters.silt.engine.kernel.files.file_guard import Content, Contradiction, Expected
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.progress import Progress, counted, silent
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table import active_files
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, DeletionVector, Metadata, Protocol
from dbt.adapters.silt.engine.kernel.table.column_mapping import MAX_COLUMN_ID, max_column_id
from dbt.adapters.silt.engine.kernel.table.features import check_writable, merged, needed_features, upgraded
from dbt.adapters.silt.engine.kernel.table.identity import with_farthest_marks
from dbt.adapters.silt.engine.kernel.table.keys import of_a_copy
from dbt.adapters.silt.engine.kernel.table.paths import absolute_name, decode_path, log_path
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

_IN_COMMIT_TIMESTAMPS = "delta.enableInCommitTimestamps"
_WORKERS: Final = 8


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
        written = (_copied(source.log.store, source.snapshot, log, settings.progress),)
        adds, removed = written[0].adds, there
    removes = () if base is None or removed is None else tuple(base.add_files(removed))
    now = log.clock.now_ms()
    changes = Changes(
        operation=_operation(source, options, adds, removes),
        adds=adds,
        removes=tuple(add.remove(now) for add in removes),
        metadata=metadata,
        protocol=None if base is not None and protocol == base.protocol else protocol,
        domains=copied_domains(source.snapshot, base),
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
        schema_string=_schema_string(source, base),
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


def _schema_string(source: Snapshot, base: Snapshot | None) -> str:
    """Returns the source's schema; no identity column assigns a number that the replaced table has assigned."""
    schema = source.schema if base is None else with_farthest_marks(source.schema, base.schema)
    return source.metadata.schema_string if schema == source.schema else schema.to_json()


def _configuration(source: Snapshot, base: Snapshot | None) -> dict[str, str]:
    """Returns the source's properties; the start of in-commit timestamps and the columns of row ids are the table's."""
    configuration = of_a_copy(source.metadata.configuration)
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
    adds = _with_absolute_paths(source.log.store.root, source.snapshot.add_files())
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


@dataclass(frozen=True)
class _Copy:
    """A file to copy: its name in the source, and its path in the target."""

    name: str
    path: str


def _with_absolute_paths(root: str, adds: Iterable[AddFile]) -> tuple[AddFile, ...]:
    """Returns the files with absolute paths, so that another table can refer to them.

    Args:
        root: the folder of the files' table.
    """
    return tuple(
        _as_target_file(add, _absolute_uri(root, add.path), _absolute_vector(root, add.deletion_vector)) for add in adds
    )


def _copied(source: Store, snapshot: Snapshot, target: DeltaLog, progress: Progress = silent) -> Written:
    """Copies the snapshot's data files, and the files of their deletion vectors, into a new folder of the target.

    Partition folders are kept; files of the same name get different names. On failure, the copies are deleted.

    Args:
        source: the store of the snapshot's table.
        progress: receives the number of copied files.

    Raises:
        DataFileMissingError, DataFileChangedError: if a file is missing, or its size differs from the log.
        StorageError: if a file cannot be copied.
    """
    folder, chosen = target.clock.new_id(), list(snapshot.add_files())
    names = _target_names(folder, [decode_path(add.path) for add in chosen])
    vectors = _target_vectors(folder, target, chosen)
    copies = [_Copy(decode_path(add.path), name) for add, name in zip(chosen, names, strict=True)]
    copies += [_Copy(name, str(file_name(vector))) for name, vector in vectors.items()]
    with discarded_on_error(target, (Written(folder, (), 0),)):
        found = _copy_all(source, target.store, copies, progress)
        for add, name in zip(chosen, names, strict=True):
            expected = Expected(decode_path(add.path), add.size, add.modification_time, add.stats)
            if problem := file_guard.size_problem(expected, found[name][0]):
                path = absolute_name(source.root, expected.name)
                raise file_guard.changed(Contradiction(problem), path, snapshot.table, snapshot.version)
    done = []
    for add, name in zip(chosen, names, strict=True):
        of_target = _as_target_file(add, log_path(name), _moved_vector(add.deletion_vector, vectors))
        size, modified_ms = found[name]
        done.append(replace(of_target, size=size, modification_time=modified_ms))
    return Written(folder, tuple(done), 0)


def _absolute_uri(root: str, path: str) -> str:
    """Returns the absolute path, in the log's form, of a file that the log of the table at `root` names."""
    name = absolute_name(root, path)
    return f"file://{log_path(name)}" if name.startswith("/") else log_path(name)


def _as_target_file(add: AddFile, path: str, vector: DeletionVector | None) -> AddFile:
    """Returns the file for another table, without the source's row ids and commit version, as in delta-spark."""
    return replace(
        add,
        path=path,
        deletion_vector=vector,
        data_change=True,
        base_row_id=None,
        default_row_commit_version=None,
    )


def _absolute_vector(root: str, vector: DeletionVector | None) -> DeletionVector | None:
    name = None if vector is None else file_name(vector)
    if vector is None or name is None or vector.storage_type == IN_FILE_OF_ABSOLUTE_PATH:
        return vector
    path = _absolute_uri(root, log_path(name))
    return replace(vector, storage_type=IN_FILE_OF_ABSOLUTE_PATH, path_or_inline_dv=path)


def _target_names(folder: str, names: list[str]) -> list[str]:
    taken: set[str] = set()
    found = []
    for position, name in enumerate(names):
        *above, own = name.split("/")
        partitions = [part for part in above if "=" in part]
        path = "/".join((folder, *partitions, own))
        if path in taken:
            path = "/".join((folder, *partitions, f"{position}-{own}"))
        taken.add(path)
        found.append(path)
    return found


def _target_vectors(folder: str, target: DeltaLog, adds: list[AddFile]) -> dict[str, DeletionVector]:
    """Maps each file of deletion vectors in the source to a descriptor of its copy."""
    vectors = [add.deletion_vector for add in adds if add.deletion_vector is not None]
    named = {name: vector for vector in vectors if (name := file_name(vector)) is not None}
    return {
        name: replace(vector, storage_type=IN_FILE, path_or_inline_dv=_new_name(folder, target))
        for name, vector in named.items()
    }


def _new_name(folder: str, target: DeltaLog) -> str:
    return folder + z85.encode(uuid.UUID(target.clock.new_id()).bytes)


def _moved_vector(vector: DeletionVector | None, copies: dict[str, DeletionVector]) -> DeletionVector | None:
    name = None if vector is None else file_name(vector)
    if vector is None or name is None:
        return vector
    return replace(vector, storage_type=IN_FILE, path_or_inline_dv=copies[name].path_or_inline_dv)


def _copy_all(source: Store, target: Store, copies: list[_Copy], progress: Progress) -> dict[str, tuple[int, int]]:
    """Copies the files, and returns the size and modification time of each copy, by its path."""
    for folder in dict.fromkeys(each.path.rpartition("/")[0] for each in copies):
        target.make_folder(folder)
    with ThreadPoolExecutor(_WORKERS) as pool:
        done = pool.map(functools.partial(_copy, source, target), copies)
        found = list(counted(done, progress, "files copied", len(copies)))
    target.make_durable([each.path for each in copies])
    return {each.path: sizes for each, sizes in zip(copies, found, strict=True)}


def _copy(source: Store, target: Store, each: _Copy) -> tuple[int, int]:
    status = data_files.copy(source, each.name, target, each.path)
    return status.size, status.modified_ms
