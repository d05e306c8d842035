"""PreparedTable: a table of a publication that is ready to be put or checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.publication.documents import Part
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes

Settle: TypeAlias = Callable[[int], bool]
"""Settles another publication; returns whether it is published."""

Rewrite: TypeAlias = Callable[[Changes, CommitInfo], tuple[Changes, CommitInfo]]
"""Returns the changes and the `commitInfo` of another commit with the same rows."""


class VersionTaken(Exception):
    """A commit that names the version of another commit could not be true: another writer has put that version.

    Args:
        table: the name of the table that has the version.
    """

    def __init__(self, table: str) -> None:
        super().__init__(table)


class PreparedTable(Protocol):
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
