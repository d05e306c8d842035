"""Attempts to write a commit at a version; the outcome is Committed, Conflict or Unknown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from dbt.adapters.silt.engine.kernel.clock import back_off
from dbt.adapters.silt.engine.kernel.errors import (
    ConcurrentDropError,
    CorruptLogError,
    InternalError,
    MissingLogVersionError,
    NotWrittenError,
    StorageError,
    StorageRefusedError,
)
from dbt.adapters.silt.engine.kernel.log.commit_file import CommitFile
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing, PinnedFolder, PutResult
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo
from dbt.adapters.silt.engine.kernel.table.paths import commit_name, commit_path

SETTLING_TRIES: Final = 8
"""The number of writes after which the outcome is reported as unknown."""

_FIRST_WAIT = 0.1
_LONGEST_WAIT = 5.0


@dataclass(frozen=True)
class Committed:
    """The version holds this commit.

    Attributes:
        after: the first error that left the outcome of an earlier write of it uncertain, if any.
    """

    after: StorageError | CorruptLogError | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Conflict:
    """The version holds another commit; this commit was not written."""


@dataclass(frozen=True)
class Unknown:
    """The version may hold this commit, now or later.

    Attributes:
        error: the first error that left the outcome uncertain.
        refused: the error of a later write that was refused, if any.
    """

    error: StorageError | CorruptLogError
    refused: StorageError | None = None


Outcome: TypeAlias = Committed | Conflict | Unknown


@dataclass(frozen=True)
class Entry:
    """The bytes of a commit, and the unique `txnId` in them."""

    data: bytes
    txn_id: str


def attempt(log: DeltaLog, folder: PinnedFolder, version: int, entry: Entry) -> Outcome:
    """Writes the entry at the version if the version is free.

    If the outcome of a write is uncertain, the same bytes are written at the same version again, so that they can be
    committed only once. As soon as the version can be read, its `txnId` identifies its writer.

    Raises:
        ConcurrentDropError: if the log's folder no longer exists and the entry was not written.
        NotWrittenError: if the storage refused the entry.
    """
    unknown: StorageError | CorruptLogError | None = None
    refused: StorageError | None = None
    for tries in range(SETTLING_TRIES):
        try:
            if folder.put_if_absent(commit_name(version), entry.data) is PutResult.CREATED:
                return Committed(unknown)
            return Committed(unknown) if _is_own(log, version, entry) else Conflict()
        except ObjectMissing as error:
            if unknown is None:
                raise ConcurrentDropError("the table was dropped", table=log.name, version=version - 1) from error
            return Unknown(unknown)
        except NotWrittenError as error:
            if unknown is None:
                raise
            refused = error
        except StorageRefusedError as error:
            unknown, refused = unknown or error, error
        except (StorageError, CorruptLogError) as error:
            unknown = unknown or error
        back_off(log.clock, tries, _FIRST_WAIT, _LONGEST_WAIT)
    if unknown is None:
        raise InternalError(
            f"the outcome of {SETTLING_TRIES} attempts is unknown, without an error", table=log.name, version=version
        )
    return Unknown(unknown, refused if refused is not unknown else None)


def _is_own(log: DeltaLog, version: int, entry: Entry) -> bool:
    """Returns whether the existing version is this commit: a storage may answer EXISTS to the writer that created it.

    Raises:
        StorageError, CorruptLogError: if that cannot be decided yet.
    """
    commit = _commit_at(log, version)
    if commit is None:
        raise StorageError(f"the storage reported that {commit_name(version)} exists, and then that it does not")
    actions = commit.actions(log.name)
    return any(isinstance(action, CommitInfo) and action.txn_id == entry.txn_id for action in actions)


def _commit_at(log: DeltaLog, version: int) -> CommitFile | None:
    """Returns the commit of a version, or None if it does not exist.

    An object store returns the whole file, and the conflict check need not read it again. Another store may return a
    part of it, which is enough here: the first line has the `txnId`.
    """
    try:
        if not log.store.has_folders:
            return next(log.read_ahead(version), None)
        return CommitFile(version, log.store.read(commit_path(version)))
    except (ObjectMissing, MissingLogVersionError):
        return None
