"""One attempt to put a commit at one version, and what became of it: landed, conflict or unknown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from dbt.adapters.silt.engine.kernel.clock import back_off
from dbt.adapters.silt.engine.kernel.errors import (
    ConcurrentDropError,
    CorruptLogError,
    InternalError,
    NotWrittenError,
    StorageError,
)
from dbt.adapters.silt.engine.kernel.log.commit_file import CommitFile
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing, PinnedFolder, PutResult
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo
from dbt.adapters.silt.engine.kernel.table.paths import commit_name, commit_path

SETTLING_TRIES: Final = 8
"""How often the bytes are put before an answer stays unknown."""

_FIRST_WAIT = 0.1
_LONGEST_WAIT = 5.0


@dataclass(frozen=True)
class Committed:
    """The version is this commit."""


@dataclass(frozen=True)
class Conflict:
    """The version is another commit; this one is nowhere."""


@dataclass(frozen=True)
class Unknown:
    """The version may be this commit, now or later; `error` is the first answer that did not say."""

    error: StorageError | CorruptLogError


Outcome: TypeAlias = Committed | Conflict | Unknown


@dataclass(frozen=True)
class Entry:
    """The bytes of a commit, and the `txnId` in them that no other commit has."""

    data: bytes
    txn_id: str


def attempt(log: DeltaLog, folder: PinnedFolder, version: int, entry: Entry) -> Outcome:
    """Puts the entry at the version if nothing is there.

    An answer that does not say what happened is followed by the same bytes at the same version, so that however often
    they land, they land once; only when the version is occupied, and can be read, is it known by whom.

    Raises:
        ConcurrentDropError: the log's folder is gone, and the entry never got there.
        NotWrittenError: the storage refused the entry.
    """
    unknown: StorageError | CorruptLogError | None = None
    for tries in range(SETTLING_TRIES):
        try:
            if folder.put_if_absent(commit_name(version), entry.data) is PutResult.CREATED:
                return Committed()
            return _occupant(log, version, entry)
        except ObjectMissing as error:
            if unknown is None:
                raise ConcurrentDropError("the table was dropped", table=log.name, version=version - 1) from error
            return Unknown(unknown)
        except NotWrittenError:
            if unknown is None:
                raise
        except (StorageError, CorruptLogError) as error:
            unknown = unknown or error
        back_off(log.clock, tries, _FIRST_WAIT, _LONGEST_WAIT)
    if unknown is None:
        raise InternalError(f"{SETTLING_TRIES} attempts had no outcome", table=log.name, version=version)
    return Unknown(unknown)


def _occupant(log: DeltaLog, version: int, entry: Entry) -> Outcome:
    """Who has the version, even where a storage says EXISTS to the one who made it.

    Raises:
        StorageError, CorruptLogError: it cannot be made out yet.
    """
    try:
        data = log.store.read(commit_path(version))
    except ObjectMissing as error:
        raise StorageError(f"{commit_name(version)} is said to be there and is not found") from error
    actions = CommitFile(version, data).actions(log.name)
    is_mine = any(isinstance(action, CommitInfo) and action.txn_id == entry.txn_id for action in actions)
    return Committed() if is_mine else Conflict()
