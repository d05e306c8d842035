"""Replays the log: builds the state of the table at a version from a checkpoint and the commits after it.

Source: the Delta specification, section "Action Reconciliation". Only the commits after the checkpoint are processed
in Python, action by action. The checkpoint's files remain Arrow columns: files that these commits name are removed from
the columns, and files that they added are appended.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from dbt.adapters.silt.engine.kernel import foreign_json
from dbt.adapters.silt.engine.kernel.errors import CorruptLogError
from dbt.adapters.silt.engine.kernel.files.table_files import TableFiles
from dbt.adapters.silt.engine.kernel.identifiers import listed
from dbt.adapters.silt.engine.kernel.log.checkpoint_read import (
    CheckpointHeader,
    read_files,
    read_header,
    read_tombstones,
)
from dbt.adapters.silt.engine.kernel.log.commit_file import (
    MOST_OF_A_COMMIT,
    CommitFile,
    corrupt_commit,
    read_commit,
    read_commits,
)
from dbt.adapters.silt.engine.kernel.log.compaction import read_compaction
from dbt.adapters.silt.engine.kernel.log.log_segment import LogSegment
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table import active_files
from dbt.adapters.silt.engine.kernel.table.actions import (
    Action,
    AddFile,
    DomainMetadata,
    Json,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from dbt.adapters.silt.engine.kernel.table.features import check_readable
from dbt.adapters.silt.engine.kernel.table.schema import StructType
from dbt.adapters.silt.engine.kernel.table.storable_schema import repeated_names

_LARGE: Final = 64 << 20
"""The size in bytes from which on the commits of several tables are read one after the other, for their memory."""
_large_replays = threading.RLock()


@dataclass(frozen=True)
class TableState:
    """The state of a table at a version."""

    protocol: Protocol
    metadata: Metadata
    files: TableFiles
    transactions: Mapping[str, SetTransaction]
    domains: Mapping[str, DomainMetadata]


def replay(store: Store, segment: LogSegment, table: str) -> TableState:
    """Builds the state at the segment's version.

    Raises:
        UnsupportedFeatureError: if reading the table needs a feature that this engine does not have.
        CorruptLogError: if a commit cannot be read, or the log lacks protocol or metadata.
        CorruptCheckpointError: if the segment's checkpoint cannot be read.
        MissingLogVersionError: if a commit disappeared after the listing.
        StorageError: if a file cannot be read.
    """
    sizes = [file.size for file in segment.commits]
    size = sum(sizes)
    if max(sizes, default=0) <= MOST_OF_A_COMMIT and size > MOST_OF_A_COMMIT * 2:
        versions = f"the commits from version {segment.first_commit} to {segment.version}"
        raise CorruptLogError(
            f"{versions} have {size} bytes, but at most {MOST_OF_A_COMMIT * 2} can be read",
            remedy="Read an earlier version, or write a checkpoint with another engine",
            table=table,
            version=segment.version,
        )
    with _large_replays if size > _LARGE else contextlib.nullcontext():
        return _replayed(store, segment, table)


def _replayed(store: Store, segment: LogSegment, table: str) -> TableState:
    checkpoint = segment.checkpoint
    if checkpoint is None:
        return advance(None, _read_commits(store, segment, None, table), table)
    header = read_header(store, checkpoint, table)
    commits = _read_commits(store, segment, header, table)
    _check_protocol(commits, header.protocol, header.metadata, table)
    files = read_files(store, checkpoint, header, table)
    base = TableState(header.protocol, header.metadata, files, header.transactions, header.domains)
    return advance(base, commits, table)


def advance(state: TableState | None, commits: Sequence[CommitFile], table: str) -> TableState:
    """Applies these commits to the state, which is None before commit 0. Raises as `replay`."""
    try:
        return _advanced(state, commits, table)
    except CorruptLogError:
        # A reader that lacks a feature of the newest protocol may misread any other action.
        _check_protocol(commits, *_definition(state), table)
        raise


def _advanced(state: TableState | None, commits: Sequence[CommitFile], table: str) -> TableState:
    changes = _Changes()
    for commit in commits:
        changes.apply(commit.actions(table, with_info=False), commit.version, table)
    protocol, metadata = _definition(state)
    protocol, metadata = changes.protocol or protocol, changes.metadata or metadata
    if protocol is None or metadata is None:
        raise corrupt_commit(0, "the first commit must have protocol and metaData", table)
    if changes.protocol or changes.metadata:
        _check_definition(protocol, metadata, table)
    return changes.onto(state, protocol, metadata, table)


def _definition(state: TableState | None) -> tuple[Protocol | None, Metadata | None]:
    return (None, None) if state is None else (state.protocol, state.metadata)


def tombstones(store: Store, segment: LogSegment, table: str) -> pa.Table:
    """Reads the removed files of any age at the segment's version, schema `active_files.TOMBSTONES`."""
    base = active_files.TOMBSTONES.empty_table()
    if segment.checkpoint is not None:
        header = read_header(store, segment.checkpoint, table)
        base = read_tombstones(store, segment.checkpoint, header, table)
    changes = _Changes()
    for commit in read_commits(store, segment.first_commit, segment.commits, table):
        changes.apply(commit.actions(table), commit.version, table)
    kept = active_files.without(base, changes.files.keys())
    removed = [action for action in changes.files.values() if isinstance(action, RemoveFile)]
    return active_files.appended(kept, active_files.tombstones_table(removed))


def _read_commits(store: Store, segment: LogSegment, header: CheckpointHeader | None, table: str) -> list[CommitFile]:
    """Reads the commits after the segment's checkpoint, and compactions instead of some of them."""
    if not segment.compactions:
        return list(read_commits(store, segment.first_commit, segment.commits, table))
    compactions = {compaction.first: compaction for compaction in segment.compactions}
    found: list[CommitFile] = []
    version = segment.first_commit
    while version <= segment.version:
        compaction, compacted = compactions.get(version), None
        if compaction is not None:
            compacted = read_compaction(store, compaction, *_newest_of(found, header), table)
        found.append(compacted or read_commit(store, version, table, segment.commits[version - segment.first_commit]))
        version = found[-1].version + 1
    return found


def _newest_of(
    commits: Sequence[CommitFile], header: CheckpointHeader | None
) -> tuple[Protocol | None, Metadata | None]:
    """Returns the newest protocol and metadata, if they exist; if either is unreadable, returns None for both."""
    bodies = _newest(commits, (Protocol.key, Metadata.key))
    protocol, metadata = (None, None) if header is None else (header.protocol, header.metadata)
    try:
        protocol = Protocol.from_json(bodies[Protocol.key]) if Protocol.key in bodies else protocol
        metadata = Metadata.from_json(bodies[Metadata.key]) if Metadata.key in bodies else metadata
    except (ValueError, KeyError, TypeError, AttributeError):
        return None, None
    return protocol, metadata


@dataclass
class _Changes:
    """The changes of several commits; the last action on each file, domain and so on counts."""

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    files: dict[str, AddFile | RemoveFile] = field(default_factory=dict)
    transactions: dict[str, SetTransaction] = field(default_factory=dict)
    domains: dict[str, DomainMetadata] = field(default_factory=dict)

    def apply(self, actions: Iterable[Action], version: int, table: str) -> None:
        for action in actions:
            match action:
                case AddFile() | RemoveFile():
                    self.files[active_files.file_key(action.path, action.deletion_vector)] = action
                case SetTransaction():
                    self.transactions[action.app_id] = action
                case DomainMetadata():
                    self.domains[action.domain] = action
                case Metadata():
                    self.metadata = action
                case Protocol():
                    self.protocol = action
        if version == 0 and (self.protocol is None or self.metadata is None):
            raise corrupt_commit(0, "the first commit must have protocol and metaData", table)

    def onto(self, state: TableState | None, protocol: Protocol, metadata: Metadata, table: str) -> TableState:
        adds = [action for action in self.files.values() if isinstance(action, AddFile)]
        try:
            added = active_files.files_table(adds)
        except (ValueError, OverflowError) as error:  # such as a path with half of a character
            raise CorruptLogError(f"its files cannot be read ({error})", table=table) from error
        domains = {**(state.domains if state else {}), **self.domains}
        return TableState(
            protocol,
            metadata,
            TableFiles(added) if state is None else state.files.changed(self.files.keys(), added),
            {**(state.transactions if state else {}), **self.transactions},
            {name: domain for name, domain in domains.items() if not domain.removed},
        )


def _check_protocol(
    commits: Sequence[CommitFile], protocol: Protocol | None, metadata: Metadata | None, table: str
) -> None:
    """Finds and checks the newest protocol before any other action is trusted."""
    bodies = _newest(commits, (Protocol.key, Metadata.key))
    try:
        protocol = Protocol.from_json(bodies[Protocol.key]) if Protocol.key in bodies else protocol
        if protocol is not None:
            check_readable(protocol, table)
        metadata = Metadata.from_json(bodies[Metadata.key]) if Metadata.key in bodies else metadata
    except (ValueError, KeyError, TypeError, AttributeError):
        return  # the replay raises an error that names the line and the file
    if protocol is not None and metadata is not None:
        _check_definition(protocol, metadata, table)


def _check_definition(protocol: Protocol, metadata: Metadata, table: str) -> None:
    check_readable(protocol, table)  # before the schema, which may need a feature
    _check_schema(metadata, table)
    check_readable(protocol, table, metadata)


def _check_schema(metadata: Metadata, table: str) -> None:
    try:
        schema = StructType.from_json(metadata.schema_string)
    except CorruptLogError as error:
        raise CorruptLogError(error.problem, table=table) from error
    problem = _contradiction(schema, metadata.partition_columns)
    if problem is not None:
        remedy = "Restore the commit file that wrote the schema from a copy"
        raise CorruptLogError(problem, remedy=remedy, table=table)


def _contradiction(schema: StructType, partition_columns: Sequence[str]) -> str | None:
    repeated = repeated_names(schema)
    if repeated:
        return f"the columns {listed(repeated)} of the table's schema have one name, in any case"
    missing = next((name for name in partition_columns if schema.field(name) is None), None)
    return missing and f"the partition column `{missing}` is missing in the table's schema"


def _newest(commits: Sequence[CommitFile], keys: Sequence[str]) -> dict[str, Json]:
    """Returns the bodies of the newest actions of these kinds, without parsing the lines of other actions."""
    found: dict[str, Json] = {}
    quoted = {key: f'"{key}"'.encode() for key in keys}
    for commit in reversed(commits):
        missing = [key for key in keys if key not in found and quoted[key] in commit.data]
        for line in commit.data.split(b"\n") if missing else ():
            wanted = [key for key in missing if key not in found and quoted[key] in line]
            body = _parsed(line) if wanted else {}
            found.update({key: body[key] for key in wanted if body.get(key) is not None})
        if len(found) == len(keys):
            break
    return found


def _parsed(line: bytes) -> dict[str, Json]:
    """Parses the line's JSON object, or returns an empty dictionary if the line is not an object."""
    try:
        body = foreign_json.loads(line)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
