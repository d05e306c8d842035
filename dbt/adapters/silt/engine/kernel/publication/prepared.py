"""PreparedTable: a table of a publication that is ready to be put or checked, and its commit: marks, text and files."""

from __future__ import annotations

import typing
from collections.abc import Callable, Sequence
from typing import TypeAlias

from dbt.adapters.silt.engine.kernel.errors import CorruptLogError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.publication.documents import Part
from dbt.adapters.silt.engine.kernel.storage.store import PinnedFolder
from dbt.adapters.silt.engine.kernel.table import actions
from dbt.adapters.silt.engine.kernel.table.paths import decode_path, is_absolute
from dbt.adapters.silt.engine.kernel.table.properties import IsolationLevel
from dbt.adapters.silt.engine.kernel.transaction.changes import DROPPED_PROPERTY, Changes, Operation
from dbt.adapters.silt.engine.kernel.transaction.commit import make_durable
from dbt.adapters.silt.engine.kernel.transaction.competing_commits import WinningCommit

Settle: TypeAlias = Callable[[int], bool]
"""Settles another publication; returns whether it is published."""

Rewrite: TypeAlias = Callable[[Changes, actions.CommitInfo], tuple[Changes, actions.CommitInfo]]
"""Returns the changes and the `commitInfo` of another commit with the same rows."""


class VersionTaken(Exception):
    """A commit that names the version of another commit could not be true: another writer has put that version.

    Args:
        table: the name of the table that has the version.
    """

    def __init__(self, table: str) -> None:
        super().__init__(table)


class PreparedTable(typing.Protocol):
    """A table of a publication: a table that exists (`ExistingTable`) or a new table (`NewTable`)."""

    @property
    def log(self) -> DeltaLog:
        """The table."""
        ...

    @property
    def is_changed(self) -> bool:
        """Whether the publication changes the table, and does not only read it."""
        ...

    def check_files(self) -> Sequence[str]:
        """Makes the new files of the table durable; returns their paths, relative to its folder.

        Raises:
            DataFileMissingError: if the storage reports that a file is missing.
        """
        ...

    def checked(self, settle: Settle, publication: int | None = None) -> PreparedTable:
        """Checks the commits after the base; returns the table on the base of the newest version.

        Raises:
            ConcurrentModificationError: if a commit conflicts.
            StorageError: if the storage failed.
        """
        ...

    @property
    def next_version(self) -> int | None:
        """The version at which the commit adds its changes to the rows that the branch has seen; None if another writer
        has changed the rows since.
        """
        ...

    def rewritten(self, rewrite: Rewrite) -> PreparedTable:
        """Returns the table with another commit; a table that is only read is returned as it is."""
        ...

    def pinned(self) -> PreparedTable:
        """Returns the table with a commit that is put at `next_version` or not at all."""
        ...

    def part(self, location: str) -> Part:
        """Returns the table for the document of its publication."""
        ...

    def put(self, settle: Settle) -> int:
        """Puts the commit into the log, once; returns the version at which it is.

        Raises:
            ConcurrentModificationError: if another commit conflicts.
            VersionTaken: if the table is pinned, and another writer has put the version.
            CommitStateUnknownError: if it is not known whether it was put.
            StorageError: if the storage failed.
        """
        ...


def drops(changes: Changes) -> bool:
    """Returns whether changes drop their table."""
    return changes.metadata is not None and DROPPED_PROPERTY in changes.metadata.configuration


def commit_text(info: actions.CommitInfo, changes: Changes) -> str:
    """Returns the text of a commit for the document of its publication."""
    return actions.serialize((info, *changes.actions())).decode()


def parsed_commit(part: Part) -> tuple[Changes, actions.CommitInfo, IsolationLevel]:
    """Returns the changes, the `commitInfo` and the isolation level of a commit in the document of its publication.

    Raises:
        CorruptLogError: if the document holds no commit.
    """
    try:
        commit = WinningCommit(part.base, tuple(actions.parse((part.commit or "").encode())))
        return _changes_of(commit), commit.info, IsolationLevel(commit.info.isolation_level)
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptLogError(f"the commit in the publication's document cannot be read ({error!r})") from error


def durable_files(log: DeltaLog, changes: Changes, folder: PinnedFolder) -> Sequence[str]:
    """Makes the new files of a commit durable; returns their paths, relative to the table's folder.

    Raises:
        DataFileMissingError: if the storage reports that a file is missing.
    """
    make_durable(log, changes, folder)
    files: tuple[actions.AddFile | actions.AddCDCFile, ...] = (*changes.adds, *changes.change_files)
    decoded = (decode_path(each.path) for each in files)
    return [path for path in decoded if path is not None and not is_absolute(path)]


def _changes_of(commit: WinningCommit) -> Changes:
    info = commit.info
    return Changes(
        Operation(info.operation or "", info.operation_parameters, info.operation_metrics or {}),
        adds=tuple(commit.of(actions.AddFile)),
        removes=tuple(commit.of(actions.RemoveFile)),
        metadata=next(iter(commit.of(actions.Metadata)), None),
        protocol=next(iter(commit.of(actions.Protocol)), None),
        transactions=tuple(commit.of(actions.SetTransaction)),
        domains=tuple(commit.of(actions.DomainMetadata)),
        change_files=tuple(commit.of(actions.AddCDCFile)),
    )
