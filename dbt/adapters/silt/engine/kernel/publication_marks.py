"""The marks of publications in the logs of tables (decision 0088).

The commit of a publication states the publication's id in its `commitInfo`, and sets the transaction identifier `MARK`
to that id, so that a checkpoint of another engine keeps the mark. The next commit of this package sets it to `SETTLED`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo, SetTransaction
from dbt.adapters.silt.engine.kernel.table.keys import VERIFIED

MARK: Final = "silt.publication"
"""The application id whose version is the id of the newest publication in the log."""
SETTLED: Final = 0
"""The version of `MARK` when no publication in the log can be undecided."""

OF_TABLES: Final = frozenset((MARK, VERIFIED))
"""The application ids of facts about a table, which are not units of work: a rollback or a conflict ignores them."""

_PUBLICATION: Final = "publication"
_UNDONE: Final = "undonePublication"


class UndecidedPublication(Exception):
    """A publication has to be settled first, which may need a lock that the caller holds.

    Args:
        publication: its id.
    """

    def __init__(self, publication: int) -> None:
        super().__init__(publication)
        self.publication = publication


class PublicationRegister(Protocol):
    """The publications of a database."""

    def is_published(self, publication: int) -> bool:
        """Returns whether readers may see the commits of a publication; settles an old publication.

        Raises:
            StorageError: if its document cannot be read.
        """
        ...

    def is_decided_published(self, publication: int) -> bool:
        """Returns whether a publication is published, without settling it. Raises as `is_published`."""
        ...

    def oldest_cut_ms(self) -> int | None:
        """Returns the time of the beginning of the oldest named branch, in milliseconds since 1970-01-01 UTC, if any.

        Raises:
            StorageError: if the branches cannot be listed.
        """
        ...

    def settle(self, publication: int) -> bool:
        """Completes a publication, or undoes it; returns whether it is published.

        Raises:
            StorageError: if the storage failed before it was settled.
        """
        ...

    def commit_across(self, log: Any, pending: Any, info: CommitInfo) -> int | None:
        """Commits changes of a table that depend on other tables by enforced foreign keys.

        Args:
            log: the table's log.
            pending: the commit, as `PendingCommit`.

        Returns:
            The version; None if the changes depend on no other table, and nothing was committed.
        """
        ...

    def location_of(self, log: Any) -> str:
        """Returns the folder of a table, relative to the database's root."""
        ...

    def check_droppable(self, log: Any, snapshot: Any) -> None:
        """Checks that no enforced foreign key references the newest version of a table.

        Raises:
            ForeignKeyViolationError: if one does.
        """
        ...


def marked(transactions: Mapping[str, SetTransaction]) -> int | None:
    """Returns the publication that a table's transaction identifiers name, or None if it need not be looked up."""
    mark = transactions.get(MARK)
    return None if mark is None or mark.version <= SETTLED else mark.version


def publication_of(info: CommitInfo) -> int | None:
    """Returns the publication that made a commit, if any."""
    return _number(info.extra.get(_PUBLICATION))


def undone_by(info: CommitInfo) -> int | None:
    """Returns the aborted publication whose commit this commit undoes, if any."""
    return _number(info.extra.get(_UNDONE))


def made_by(publication: int) -> dict[str, str]:
    """Returns the field of `commitInfo` of a commit of a publication."""
    return {_PUBLICATION: str(publication)}


def undoes(publication: int) -> dict[str, str]:
    """Returns the field of `commitInfo` of a commit that undoes the commit of an aborted publication."""
    return {_UNDONE: str(publication)}


def _number(value: object) -> int | None:
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else None
