"""Commits the files of the successful tasks as a version of the table, or deletes them."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow.compute as pc

from dbt.adapters.silt.engine.commands.commit import commit, discard_folder
from dbt.adapters.silt.engine.commands.reading import partition_match
from dbt.adapters.silt.engine.commands.target import WriteSettings
from dbt.adapters.silt.engine.datasource.writing.part_files import Written
from dbt.adapters.silt.engine.datasource.writing.planning import Asked
from dbt.adapters.silt.engine.datasource.writing.write_plan import WritePlan
from dbt.adapters.silt.engine.kernel.errors import (
    ConcurrentDropError,
    ConcurrentTransactionError,
    MetadataChangedError,
    SiltError,
    UnsupportedStatementError,
)
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.scan import skipping
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, Json, RemoveFile
from dbt.adapters.silt.engine.kernel.table.features import protocol_for
from dbt.adapters.silt.engine.kernel.table.paths import decode_path
from dbt.adapters.silt.engine.kernel.table.schema import StructType
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet, as_strings
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Finished:
    """A write whose tasks all succeeded.

    Attributes:
        operation: name and parameters, as in the history.
        txn: application id and version; a table with this or a later version of the id is not changed.
    """

    asked: Asked
    plan: WritePlan
    written: Sequence[Written]
    operation: tuple[str, dict[str, Json]]
    txn: tuple[str, int] | None = None

    def commit(self) -> None:
        """Commits the files; deletes them if the table already holds the `txn` or the commit certainly failed.

        Raises:
            ConcurrentModificationError: if another writer won; nothing is applied.
            CommitStateUnknownError: if the storage did not answer; the files are kept.
            UnsupportedStatementError: if only some rows of a file would be replaced.
        """
        if self.plan.base_version is None:
            self._create()
            return
        log = self.asked.options.table.log()
        try:
            self._commit_to(log)
        except ConcurrentTransactionError:
            if self.txn is None or not log.snapshot().holds(self.txn):
                raise

    @property
    def _adds(self) -> tuple[AddFile, ...]:
        return tuple(add for each in self.written for add in each.adds)

    @property
    def _settings(self) -> WriteSettings:
        note = self.asked.options.text("userMetadata")
        return WriteSettings(txn=self.txn, commit=CommitSettings(user_metadata=note))

    def _create(self) -> None:
        target, metadata = self.asked.target, self.plan.metadata
        log = target.handle(self.plan.location.root)
        protocol = protocol_for(StructType.from_json(metadata.schema_string), metadata.configuration)
        parameters = {"partitionBy": json.dumps(list(metadata.partition_columns), ensure_ascii=False)}
        operation = Operation("CREATE TABLE AS SELECT", parameters, self._metrics(()))
        changes = Changes(operation, adds=self._adds, metadata=metadata, protocol=protocol)
        commit(log, None, changes, ReadSet(), self._settings, (_Folder(self.plan.folder),))
        target.publish(log)
        _Folder(self.plan.folder).tidy(log, self._adds)

    def _commit_to(self, log: DeltaLog) -> None:
        folder = _Folder(self.plan.folder)
        try:
            newest = log.snapshot()
            if self.txn is not None and newest.holds(self.txn):
                _logger.info("%s: %s is already committed", log.name, self.txn)
                folder.discard(log)
                return
            base = self._base(log, newest)
            removed, reads = self._replaced(base, log.clock.now_ms())
        except SiltError:
            folder.discard(log)
            raise
        name, parameters = self.operation
        operation = Operation(name, parameters, self._metrics(removed))
        changes = Changes(operation, adds=self._adds, removes=removed)
        commit(log, base, changes, reads, self._settings, (folder,))
        folder.tidy(log, self._adds)

    def _base(self, log: DeltaLog, newest: Snapshot) -> Snapshot:
        """Returns the snapshot to change: for appends the newest, for overwrites the planned version.

        Raises:
            ConcurrentDropError, MetadataChangedError: if the files were written for other metadata.
        """
        planned = self.plan.metadata
        if newest.metadata.id != planned.id:
            raise ConcurrentDropError("the table was dropped and re-created", table=log.name)
        if newest.metadata != planned:
            raise MetadataChangedError(
                "another writer changed the table's columns or properties", table=log.name, version=newest.version
            )
        return log.snapshot_at(self.plan.base_version or 0) if self.asked.overwrite else newest

    def _replaced(self, base: Snapshot, now_ms: int) -> tuple[tuple[RemoveFile, ...], ReadSet]:
        """Returns the files to remove, and the read set of the write."""
        asked = self.asked
        if not asked.overwrite:
            return (), ReadSet()
        if asked.replace_where is not None:
            files = skipping.prune(base, self.plan.predicate)
            if not pc.all(skipping.fully_matched(base, self.plan.predicate, files), min_count=0).as_py():
                raise _in_part(base)
            reads = ReadSet(predicates=(self.plan.predicate,))
        elif asked.is_dynamic and base.partition_columns:
            matched = partition_match.match(base, self._adds, null_safe=True)
            files, reads = matched.files, ReadSet(predicates=(matched.predicate,))
        else:
            files, reads = base.files, ReadSet(whole_table=True, transactions=True)
        return tuple(add.remove(now_ms) for add in base.add_files(files)), reads

    def _metrics(self, removed: Sequence[RemoveFile]) -> dict[str, str]:
        adds = self._adds
        metrics: dict[str, int | None] = {
            "numFiles": len(adds),
            "numOutputRows": sum(each.rows for each in self.written),
            "numOutputBytes": sum(add.size for add in adds),
        }
        if removed:
            metrics["numRemovedFiles"] = len(removed)
            metrics["numRemovedBytes"] = sum(each.size or 0 for each in removed)
        return as_strings(metrics)


@dataclass(frozen=True)
class _Folder:
    """The folder with the files of a write."""

    name: str

    def discard(self, log: DeltaLog) -> None:
        """Deletes all files; a failure leaves them for VACUUM."""
        discard_folder(log, self.name)

    def tidy(self, log: DeltaLog, committed: Sequence[AddFile]) -> None:
        """Deletes the files of failed task attempts, and the folder if no files were committed."""
        if not committed:
            self.discard(log)
            return
        kept = {decode_path(add.path) for add in committed}
        try:
            for status in log.store.files_below(self.name):
                if status.path not in kept:
                    log.store.delete(status.path)
        except ObjectMissing:
            return
        except SiltError as error:
            _logger.warning("%s: unused data files are left in %s: %s", log.name, self.name, error)


def discard(plan: WritePlan) -> None:
    """Deletes the folder of a write with all its uncommitted files; a failure leaves them for VACUUM."""
    _Folder(plan.folder).discard(DeltaLog(plan.location.open(), plan.table))


def abort(messages: Sequence[Written | None], plan: WritePlan) -> None:
    """Deletes the files of a write of which a task failed.

    If each task has a message, a commit was tried, and it has deleted the files unless its outcome is unknown.

    Args:
        plan: plan of the calling writer; in streams it has no files, since the messages come from another object.
    """
    if all(message is not None for message in messages):
        return
    plans = {each.folder: each for each in (plan, *(message.plan for message in messages if message is not None))}
    for each in plans.values():
        discard(each)


def _in_part(base: Snapshot) -> UnsupportedStatementError:
    return UnsupportedStatementError(
        "only some rows of a file would be replaced, but this data source replaces whole files",
        remedy="Give a condition on partition columns, or write with `Warehouse.write(..., replace_where=...)`",
        table=base.table,
        version=base.version,
    )
