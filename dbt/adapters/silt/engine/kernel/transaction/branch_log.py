"""BranchLog: the log of a table on a branch, which begins at a version of the table."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from dbt.adapters.silt.engine.kernel import foreign_json
from dbt.adapters.silt.engine.kernel.errors import CorruptLogError, NotATableError, VersionNotFoundError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.storage.store import DOCUMENT_BYTES, ObjectMissing, Store
from dbt.adapters.silt.engine.kernel.table import json_fields
from dbt.adapters.silt.engine.kernel.transaction.branched_store import BEFORE_ALL, BranchedStore
from dbt.adapters.silt.engine.kernel.transaction.changes import ReadSet, merged_reads

BASE: Final = "base.json"
"""The document in the folder of a branch for a table: the table's name, the version at which the branch begins, and the
hash of that version's files if other processes may continue the branch.
"""


class BranchLog(DeltaLog):
    """The log of a table on a branch.

    The branch begins at the version that is the newest when the branch first uses the table, or before the first
    version of a table that the branch creates. Each process that opens the same folder sees the same log. Commits are
    read and written as in any log, and only this branch sees them.

    Args:
        main: the table.
        folder: the folder of the branch for this table.
        is_lasting: whether other processes may continue the branch.
        cut: returns the version of the table at which the branch begins, or None if the table was created later; by
            default the branch begins at the newest version when it first uses the table.
    """

    if_file_is_missing = (
        "A program that does not know branches may have deleted it, as a VACUUM of another engine does: move the "
        "branch to the present tables (`silt branch NAME --update`), or delete it; `silt check` names all missing files"
    )

    def __init__(
        self,
        main: DeltaLog,
        folder: Store,
        is_lasting: bool = False,
        cut: Callable[[DeltaLog], int | None] | None = None,
    ) -> None:
        self._branched = BranchedStore(main.store, folder)
        super().__init__(self._branched, main.name, main.clock)
        self.main = main
        self.guard = main.guard
        self._is_lasting = is_lasting
        self._cut = cut
        self.reads = ReadSet()
        self._base: Snapshot | None = None

    def base(self) -> Snapshot | None:
        """Returns the snapshot of the table at which the branch begins, or None if the branch creates the table.

        Raises:
            As `DeltaLog.snapshot`.
        """
        with self._lock:
            if not self.is_used:
                self._base = self._begun()
                self._branched.base = BEFORE_ALL if self._base is None else self._base.version
                self._newest = None if self._base is None else self.main._loaded_at(self._base.version)
            return self._base

    @property
    def line(self) -> str:
        """The folder of the branch: a version on the branch is not the version of that number in the table."""
        return self._branched.branch.root

    @property
    def base_version(self) -> int:
        """The version at which the branch begins; -1 if the branch creates the table. Raises as `base`."""
        base = self.base()
        return BEFORE_ALL if base is None else base.version

    @property
    def is_used(self) -> bool:
        """Whether this process has read or changed the table on the branch."""
        return self._branched.base is not None

    def create(self) -> None:
        """Begins the log of a table that the branch creates.

        Raises:
            StorageError: if the storage failed.
        """
        with self._lock:
            self._record(BEFORE_ALL)
            self._branched.base = BEFORE_ALL

    def snapshot(self) -> Snapshot:
        """Reads the newest version on the branch; see `DeltaLog.snapshot`."""
        with self._lock:
            self.base()
            return super().snapshot()

    def snapshot_at(self, version: int) -> Snapshot:
        """Reads a version on the branch; see `DeltaLog.snapshot_at`."""
        with self._lock:
            self.base()
            return super().snapshot_at(version)

    def note(self, reads: ReadSet) -> None:
        """Adds to the part of the table that statements on the branch have read."""
        with self._lock:
            self.reads = merged_reads(self.reads, reads)

    def after_commit(self, version: int) -> None:
        """Does nothing: checksums and checkpoints belong to the table."""

    def _begun(self) -> Snapshot | None:
        """Returns the base that the branch has recorded, or records the newest version as its base."""
        recorded = self._recorded()
        if recorded is not None:
            return self._known(recorded)
        newest = self._at_cut()
        self._record(newest.version, newest.content if self._is_lasting else None)
        first = self._recorded()
        return newest if first is None or first.version == newest.version else self._known(first)

    def _at_cut(self) -> Snapshot:
        """Returns the version of the table at which the branch begins."""
        if self._cut is None:
            return self.main.snapshot()
        version = self._cut(self.main)
        if version is None:
            raise NotATableError("another program has created it since the branch began", table=self.name)
        return self.main.snapshot_at(version)

    def _known(self, recorded: _Base) -> Snapshot | None:
        if recorded.version == BEFORE_ALL:
            return None
        found = self.main.snapshot_at(recorded.version)
        if recorded.content not in (None, found.content):
            version = f"v{recorded.version}"
            raise VersionNotFoundError(
                f"its folder was restored from a copy: its {version} is not the {version} with which the run began",
                table=self.name,
                remedy="Drop the run (`silt drop-run`), and run it again",
            )
        return found

    def _record(self, version: int, content: str | None = None) -> None:
        body = {"format": json_fields.FORMAT, "version": version, "table": self.name}
        body |= {} if content is None else {"content": content}
        self._branched.branch.make_folder("")
        self._branched.branch.put_if_absent(BASE, json.dumps(body).encode())

    def _recorded(self) -> _Base | None:
        try:
            body = foreign_json.loads(self._branched.branch.read(BASE, DOCUMENT_BYTES))
            json_fields.check_format(body, "the base of the branch")
            content = body.get("content")
            return _Base(int(body["version"]), None if content is None else str(content))
        except ObjectMissing:
            return None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CorruptLogError(f"the base of the branch cannot be read ({error!r})", table=self.name) from error


@dataclass(frozen=True)
class _Base:
    """The version at which a branch begins, and the hash of its files, if it is recorded."""

    version: int
    content: str | None


def branch_of(log: DeltaLog | None) -> BranchLog | None:
    """Returns the log if it is a branch's; None if it is not, or if the log is None."""
    return log if isinstance(log, BranchLog) else None


def note_reads(log: DeltaLog | None, reads: ReadSet) -> None:
    """Notes what a statement has read of the table, if it is on a branch; see `BranchLog.note`."""
    if (branch := branch_of(log)) is not None:
        branch.note(reads)
