"""Defines Snapshot, the state of a table at a version, from which every reader and writer starts."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from dbt.adapters.silt.engine.kernel.errors import CorruptLogError
from dbt.adapters.silt.engine.kernel.files.table_files import TableFiles
from dbt.adapters.silt.engine.kernel.log.replay import TableState
from dbt.adapters.silt.engine.kernel.storage.store import PinnedFolder, PutResult, Store
from dbt.adapters.silt.engine.kernel.table import active_files
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, DomainMetadata, Metadata, Protocol, SetTransaction
from dbt.adapters.silt.engine.kernel.table.column_mapping import effective
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties
from dbt.adapters.silt.engine.kernel.table.schema import StructType


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The state of a table.

    Args:
        table: the table's name, for messages.
        version: the version number, counted from 0.
        timestamp: the commit file's modification time or the in-commit timestamp, milliseconds since 1970-01-01 UTC;
            users are shown `DeltaLog.committed_at` instead.
        active: the active files.
        transactions: unexpired transaction identifiers by application id.
        domains: existing domains of metadata by name.
        log_folder: the incarnation of the log's folder from which the snapshot was read; a commit based on the snapshot
            is written to that folder or fails. None if the snapshot is only read.
        doubt: a contradiction by a version checksum, if any, as a clause. Such a version can be read, but not
            committed on.
    """

    table: str
    version: int
    timestamp: int
    metadata: Metadata
    protocol: Protocol
    active: TableFiles
    transactions: Mapping[str, SetTransaction]
    domains: Mapping[str, DomainMetadata]
    log_folder: PinnedFolder | None = field(default=None, repr=False)
    doubt: str | None = None

    @classmethod
    def of(cls, state: TableState, table: str, version: int, timestamp: int, now_ms: int) -> Snapshot:
        """Builds a snapshot from a replayed state.

        Args:
            now_ms: the time that determines which transaction identifiers have expired.
        """
        return cls(
            table,
            version,
            timestamp,
            effective(state.metadata),
            state.protocol,
            state.files,
            _unexpired(state, now_ms),
            state.domains,
        )

    def check_undoubted(self) -> None:
        """Checks that no version checksum contradicts the log: a commit on a wrong state would hide the damage.

        Raises:
            CorruptLogError: if a checksum contradicts the log.
        """
        if self.doubt is not None:
            raise CorruptLogError(
                f"{self.doubt}: commits were lost or truncated, so writes to the table are refused",
                remedy="Restore the commit files from a copy (`silt check` names them), or restore the table to an "
                "earlier version; if the log is correct, delete the checksum file",
                table=self.table,
                version=self.version,
            )

    @property
    def schema(self) -> StructType:
        return StructType.from_json(self.metadata.schema_string)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        return self.metadata.partition_columns

    @functools.cached_property
    def properties(self) -> TableProperties:
        return TableProperties(self.metadata.configuration)

    @property
    def files(self) -> pa.Table:
        """The active files, one row each, schema `active_files.FILES`; partition values are strings as in the log,
        `stats` is a JSON string or null.

        Reading the statistics of a million files takes hundreds of megabytes: code that does not need them uses
        `files_without_statistics`, `num_files` or `skipping.prune`.

        Raises:
            CorruptCheckpointError: if the statistics in the checkpoint cannot be read.
        """
        return self.active.table

    @functools.cached_property
    def files_without_statistics(self) -> pa.Table:
        """The active files, in the order of `files`, schema `table_files.WITHOUT_STATISTICS`."""
        return self.active.without_statistics()

    @property
    def num_files(self) -> int:
        return self.active.num_rows

    @property
    def content(self) -> str:
        """A hash of the active files and their deletion vectors, which determine the rows.

        Data files never change, so a version of a table that was restored from a copy has the rows of the version of
        that number before if it has the same hash.
        """
        return self.active.content

    @functools.cached_property
    def size_in_bytes(self) -> int:
        return active_files.size(self.files_without_statistics)

    def put_in_log(self, store: Store, path: str, data: bytes) -> PutResult:
        """Writes a file, if it does not exist, to the log from which the snapshot was read, never to a later log.

        Args:
            path: a path directly in the log's folder, relative to the table's root.

        Raises:
            ObjectMissing: if that log was deleted; no file was written.
            StorageError: if the file cannot be written.
        """
        return (self.log_folder or store.pin(LOG_FOLDER)).put_if_absent(path.removeprefix(f"{LOG_FOLDER}/"), data)

    def transaction_version(self, app_id: str) -> int | None:
        """Returns the latest version that the application has committed, if any."""
        transaction = self.transactions.get(app_id)
        return None if transaction is None else transaction.version

    def holds(self, txn: tuple[str, int]) -> bool:
        """Returns whether the table has this or a later version of an application id: the unit of work is done."""
        app_id, version = txn
        recorded = self.transaction_version(app_id)
        return recorded is not None and recorded >= version

    def add_files(self, files: pa.Table | None = None) -> list[AddFile]:
        """Converts rows of `files` (all active files by default) to actions."""
        return active_files.add_files(self.files if files is None else files)


def _unexpired(state: TableState, now_ms: int) -> Mapping[str, SetTransaction]:
    retention_ms = TableProperties(state.metadata.configuration).set_transaction_retention_ms
    if retention_ms is None:
        return state.transactions
    oldest = now_ms - retention_ms
    return {
        app_id: transaction
        for app_id, transaction in state.transactions.items()
        if transaction.last_updated is not None and transaction.last_updated > oldest
    }
