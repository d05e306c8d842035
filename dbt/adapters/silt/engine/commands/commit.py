"""Commits the actions that a command prepared, and deletes its files if the commit certainly failed."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from dbt.adapters.silt.engine.commands.target import Judged, Uncommitted, WriteSettings
from dbt.adapters.silt.engine.kernel.errors import CommitStateUnknownError, SiltError
from dbt.adapters.silt.engine.kernel.files.table_files import TableFiles
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table import active_files
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, RemoveFile, SetTransaction
from dbt.adapters.silt.engine.kernel.table.column_mapping import effective
from dbt.adapters.silt.engine.kernel.table.features import needed_features, upgraded
from dbt.adapters.silt.engine.kernel.table.properties import IsolationLevel
from dbt.adapters.silt.engine.kernel.table.schema import StructType
from dbt.adapters.silt.engine.kernel.transaction import branch_log
from dbt.adapters.silt.engine.kernel.transaction import commit as transaction
from dbt.adapters.silt.engine.kernel.transaction.changes import NOT_DONE, Changes, ReadSet, merged_reads
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitResult, CommitSettings
from dbt.adapters.silt.engine.kernel.transaction.positions import is_position

_logger = logging.getLogger(__name__)


@contextlib.contextmanager
def discarded_on_error(log: DeltaLog, written: Iterable[Uncommitted]) -> Iterator[None]:
    """Deletes uncommitted files if the block raises anything, including an interrupt."""
    try:
        yield
    except BaseException:
        for each in written:
            each.discard(log)
        raise


def discard_folder(log: DeltaLog, folder: str) -> None:
    """Deletes a folder of files that no version of the table uses; a failure leaves them for VACUUM."""
    try:
        log.store.delete_folder(folder)
    except SiltError as error:
        _logger.warning("%s: data files that nothing uses are left in %s: %s", log.name, folder, error)


def commit(
    log: DeltaLog,
    base: Snapshot | None,
    changes: Changes,
    reads: ReadSet,
    settings: WriteSettings,
    written: Sequence[Uncommitted] = (),
) -> CommitResult:
    """Commits changes together with the transaction identifier that the caller asked for.

    Args:
        base: the snapshot that the changes are based on; None creates the table.
        reads: the command's own read set; the read set of the statement's query is added.
        written: the new files; deleted if the commit certainly failed.

    Raises:
        AuditFailedError: if an audit of the statement fails on the version that the changes would make.
        ConcurrentModificationError and the other errors of `kernel.transaction.commit`.
    """
    changes = with_transaction(log, _with_protocol(base, changes), settings)
    reads, how = merged_reads(reads, settings.reads), settings.commit
    if settings.judge is not None:
        with discarded_on_error(log, written):
            judged = settings.judge.judge(log, base, changes, written)
        reads, how = merged_reads(reads, judged.reads), _as_judged(judged, how)
        if judged.instead is not None:
            changes, written = judged.instead[0], (*written, judged.instead[1])
    try:
        return transaction.commit(log, base, changes, reads, how)
    except CommitStateUnknownError:
        raise
    except SiltError:
        for each in written:
            each.discard(log)
        raise


def _as_judged(judged: Judged, settings: CommitSettings) -> CommitSettings:
    """Returns the settings of an audited commit: if the verdict depends on rows, other writers' new rows do not come
    between.
    """
    level = settings.isolation_level if judged.reads.is_empty else IsolationLevel.SERIALIZABLE
    return replace(settings, isolation_level=level, commit_info={**settings.commit_info, **judged.commit_info})


def future(log: DeltaLog, base: Snapshot | None, changes: Changes) -> Snapshot:
    """Returns the version that changes would make of a base, before they are committed."""
    metadata = changes.metadata or (None if base is None else base.metadata)
    protocol = changes.protocol or (None if base is None else base.protocol)
    assert metadata is not None and protocol is not None, "the first commit has both"
    files = TableFiles(active_files.FILES.empty_table()) if base is None else base.active
    changed: tuple[AddFile | RemoveFile, ...] = (*changes.removes, *changes.adds)
    gone = {active_files.file_key(each.path, each.deletion_vector) for each in changed}
    active = files.changed(gone, active_files.files_table(changes.adds))
    version = 0 if base is None else base.version + 1
    return Snapshot(log.name, version, log.clock.now_ms(), effective(metadata), protocol, active, {}, {})


def note_reads(log: DeltaLog, reads: ReadSet, settings: WriteSettings) -> None:
    """Notes the reads of a statement that commits nothing: on a branch, another writer's change of them conflicts."""
    branch_log.note_reads(log, merged_reads(reads, settings.reads))


def replaced_whole(base: Snapshot | None, changes: Changes, settings: WriteSettings) -> Changes:
    """Returns the changes of a statement that replaces all rows, which forget these rows' transaction identifiers."""
    if base is None:
        return changes
    gone = [
        each
        for each in base.transactions.values()
        if each.version >= 0 and (settings.is_forgotten_on_replace(each.app_id) or is_position(each.app_id))
    ]
    return replace(changes, forgotten=tuple(SetTransaction(each.app_id, NOT_DONE) for each in gone))


def with_transaction(log: DeltaLog, changes: Changes, settings: WriteSettings) -> Changes:
    """Adds the transaction identifiers that the statement records, if any, to the changes."""
    if settings.txn is None and not settings.positions:
        return changes
    done = [] if settings.txn is None else [SetTransaction(*settings.txn, log.clock.now_ms())]
    done += [each.action for each in settings.positions if each.is_advanced]
    moved_back = [each for each in settings.positions if each.is_changed and not each.is_advanced]
    named = {each.app_id for each in done} | {each.app_id for each in settings.positions}
    return replace(
        changes,
        transactions=(*changes.transactions, *done),
        forgotten=(
            *(each for each in changes.forgotten if each.app_id not in named),
            *(each.action for each in moved_back),
        ),
    )


def _with_protocol(base: Snapshot | None, changes: Changes) -> Changes:
    """Adds the protocol that new metadata needs to the changes, if the table's protocol is insufficient."""
    if base is None or changes.metadata is None or changes.protocol is not None:
        return changes
    schema = StructType.from_json(changes.metadata.schema_string)
    wanted = upgraded(base.protocol, needed_features(schema, changes.metadata.configuration))
    return changes if wanted == base.protocol else replace(changes, protocol=wanted)
