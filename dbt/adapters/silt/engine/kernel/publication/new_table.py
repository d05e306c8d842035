"""NewTable: a table that a publication creates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from dbt.adapters.silt.engine.kernel.errors import ConcurrentCreateError, CorruptLogError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.publication.documents import NEW, Part
from dbt.adapters.silt.engine.kernel.publication.prepared import Rewrite, Settle
from dbt.adapters.silt.engine.kernel.publication.prepared_commit import (
    commit_text,
    durable_files,
    parsed_commit,
)
from dbt.adapters.silt.engine.kernel.storage.store import PinnedFolder
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo, Metadata
from dbt.adapters.silt.engine.kernel.transaction.attempt import Conflict, Unknown, attempt, state_unknown
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes
from dbt.adapters.silt.engine.kernel.transaction.commit import AttemptPoint, entry_at, log_folder_of


@dataclass(frozen=True)
class NewTable:
    """A table that a publication creates; its name refers to it when the publication is published.

    Attributes:
        log: the table, in a folder without a log.
        changes: its first version.
        info: the `commitInfo` of that version.
        folder: the folder of its log.
    """

    log: DeltaLog
    changes: Changes
    info: CommitInfo
    folder: PinnedFolder = field(repr=False)

    @property
    def is_changed(self) -> bool:
        return True

    def check_files(self) -> Sequence[str]:
        return durable_files(self.log, self.changes, self.folder)

    def checked(self, settle: Settle, publication: int | None = None) -> NewTable:  # noqa: ARG002
        """Opens the folder of the log again, which the end of an aborted publication has replaced."""
        return replace(self, folder=log_folder_of(self.log, None))

    @property
    def next_version(self) -> int:
        return 0

    def rewritten(self, rewrite: Rewrite) -> NewTable:
        changes, info = rewrite(self.changes, self.info)
        return replace(self, changes=changes, info=info)

    def pinned(self) -> NewTable:
        return self

    def part(self, location: str) -> Part:
        return Part(self.log.name, location, _metadata(self.changes).id, NEW, commit_text(self.info, self.changes))

    def put(self, settle: Settle) -> int:  # noqa: ARG002
        """Puts version 0."""
        entry = entry_at(self.log, None, self.changes, self.info, AttemptPoint(0, 0))
        outcome = attempt(self.log, self.folder, 0, entry)
        if isinstance(outcome, Unknown):
            raise state_unknown(self.log, 0, outcome)
        if isinstance(outcome, Conflict):
            raise ConcurrentCreateError("another writer created the table first", table=self.log.name)
        return 0


def new_table(log: DeltaLog, part: Part) -> NewTable:
    """Returns the table of a publication that another process has begun.

    Raises:
        ConcurrentDropError: if the folder of its log is missing.
        CorruptLogError: if the document holds no first version of a table.
    """
    changes, info, _ = parsed_commit(part)
    _metadata(changes)
    return NewTable(log, changes, info, log_folder_of(log, None))


def _metadata(changes: Changes) -> Metadata:
    if changes.metadata is None:
        raise CorruptLogError("the commit in the publication's document creates no table")
    return changes.metadata
