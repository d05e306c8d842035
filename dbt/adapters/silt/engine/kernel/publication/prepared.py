"""PreparedTable: a table of a publication that is ready to be put or checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.publication.documents import Part

Settle: TypeAlias = Callable[[int], bool]
"""Settles another publication; returns whether it is published."""


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

    def marked_with(self, publication: int) -> PreparedTable:
        """Returns the table with the marks of a publication in its commit."""
        ...

    def part(self, location: str) -> Part:
        """Returns the table for the document of its publication."""
        ...

    def put(self, settle: Settle) -> int:
        """Puts the commit into the log, once; returns the version at which it is.

        Raises:
            ConcurrentModificationError: if another commit conflicts.
            CommitStateUnknownError: if it is not known whether it was put.
            StorageError: if the storage failed.
        """
        ...
