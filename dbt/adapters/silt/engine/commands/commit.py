"""Commits the actions that a command prepared, and deletes its files where the commit surely failed."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from dbt.adapters.silt.engine.commands.target import WriteSettings
from dbt.adapters.silt.engine.kernel.errors import CommitStateUnknownError, SiltError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.actions import SetTransaction
from dbt.adapters.silt.engine.kernel.table.features import needed_features, upgraded
from dbt.adapters.silt.engine.kernel.table.schema import StructType
from dbt.adapters.silt.engine.kernel.transaction import commit as transaction
from dbt.adapters.silt.engine.kernel.transaction.changes import NOT_DONE, Changes, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitResult

_logger = logging.getLogger(__name__)


class Uncommitted(Protocol):
    """Files that a verb has written, in no version of the table yet."""

    def discard(self, log: DeltaLog) -> None:
        """Deletes them; a failure leaves them for VACUUM."""
        ...


@contextlib.contextmanager
def discarded_on_error(log: DeltaLog, written: Iterable[Uncommitted]) -> Iterator[None]:
    """Deletes files that are in no version where the block raises anything, an interrupt included."""
    try:
        yield
    except BaseException:
        for each in written:
            each.discard(log)
        raise


def discard_folder(log: DeltaLog, folder: str) -> None:
    """Deletes a folder of files that surely are in no version of the table; a failure leaves them for VACUUM."""
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
        reads: what the verb itself read; what the statement's query read is added.
        written: the new files; deleted again where the commit surely did not land.

    Raises:
        ConcurrentModificationError and the other errors of `kernel.transaction.commit`.
    """
    try:
        return transaction.commit(
            log,
            base,
            with_transaction(log, _with_protocol(base, changes), settings),
            merged(reads, settings.reads),
            settings.commit,
        )
    except CommitStateUnknownError:
        raise
    except SiltError:
        for each in written:
            each.discard(log)
        raise


def replaced_whole(base: Snapshot | None, changes: Changes, settings: WriteSettings) -> Changes:
    """The changes of a statement that replaces all rows, without the transaction identifiers of these rows."""
    if base is None:
        return changes
    gone = [
        each
        for each in base.transactions.values()
        if each.version >= 0 and settings.is_forgotten_on_replace(each.app_id)
    ]
    return replace(changes, forgotten=tuple(SetTransaction(each.app_id, NOT_DONE) for each in gone))


def merged(first: ReadSet, second: ReadSet) -> ReadSet:
    """The union of two read sets."""
    return ReadSet(
        predicates=(*first.predicates, *second.predicates),
        paths=first.paths | second.paths,
        whole_table=first.whole_table or second.whole_table,
        transactions=first.transactions or second.transactions,
    )


def with_transaction(log: DeltaLog, changes: Changes, settings: WriteSettings) -> Changes:
    """The changes with the transaction identifier that the caller asked for, if any."""
    if settings.txn is None:
        return changes
    app_id, version = settings.txn
    recorded = SetTransaction(app_id, version, log.clock.now_ms())
    return replace(
        changes,
        transactions=(*changes.transactions, recorded),
        forgotten=tuple(each for each in changes.forgotten if each.app_id != app_id),
    )


def _with_protocol(base: Snapshot | None, changes: Changes) -> Changes:
    """The changes with the protocol that new metadata asks for, where the table's present one will not do."""
    if base is None or changes.metadata is None or changes.protocol is not None:
        return changes
    schema = StructType.from_json(changes.metadata.schema_string)
    wanted = upgraded(base.protocol, needed_features(schema, changes.metadata.configuration))
    return changes if wanted == base.protocol else replace(changes, protocol=wanted)
