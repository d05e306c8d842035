"""The positions of a stream, and the files that it reads of each version: first the whole table, then each commit's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dbt.adapters.silt.engine.kernel.errors import UnsupportedStatementError, VersionNotFoundError
from dbt.adapters.silt.engine.kernel.log.history import Commit
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.scan.change_feed import INSERT, ChangedFile, changed_files, changes_between
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, RemoveFile

_NOWHERE: Final = -1
_WHOLE: Final = -1


@dataclass(frozen=True)
class Offset:
    """The position up to which a table was read: a version and, if it was read in part, a number of its files.

    Attributes:
        table: the table's id.
        version: last version; -1 if nothing was read.
        files: number of the version's files that were read; None for all.
        is_snapshot: whether the version's files are all files of the table, not only its added files.
        first: in the offset that ends the first batch, the first version to read, unless the stream begins with the
            whole table.
    """

    table: str
    version: int = _NOWHERE
    files: int | None = None
    is_snapshot: bool = False
    first: int | None = None

    @property
    def is_begin(self) -> bool:
        """Whether nothing was read."""
        return self.version == _NOWHERE

    def to_json(self) -> dict[str, Any]:
        """Returns the JSON that Spark keeps in the checkpoint."""
        return {
            "table": self.table,
            "version": self.version,
            "files": _WHOLE if self.files is None else self.files,
            "snapshot": self.is_snapshot,
            "first": _NOWHERE if self.first is None else self.first,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Offset:
        files, first = body["files"], body["first"]
        return cls(
            body["table"],
            body["version"],
            None if files == _WHOLE else files,
            body["snapshot"],
            None if first == _NOWHERE else first,
        )


StreamFile = AddFile | ChangedFile


@dataclass(frozen=True)
class Portion:
    """The files of a version that remain to be read.

    Attributes:
        files: files in a repeatable order.
        done: number of earlier files, which were read.
        is_snapshot: whether these are the files of the whole table.
    """

    version: int
    files: tuple[StreamFile, ...]
    done: int = 0
    is_snapshot: bool = False


@dataclass(frozen=True)
class Portions:
    """Reads the versions of a table for a stream.

    Attributes:
        is_feed: whether changed rows are read; otherwise added rows.
        skip_change_commits: whether versions that change or delete rows are skipped.
        ignore_deletes: whether versions that only delete rows are skipped.
    """

    log: DeltaLog
    is_feed: bool = False
    skip_change_commits: bool = False
    ignore_deletes: bool = False

    def after(self, start: Offset, end: Offset) -> Iterator[Portion]:
        """Yields the portions between two offsets; `end` may be within the last portion."""
        first = start.version + 1
        if start.is_begin and end.first is None:
            yield self._whole_table(end.version)
            return
        if start.is_begin:
            first = end.first or 0
        elif start.files is not None:
            yield self._rest(start)
        yield from self._versions(first, end.version)

    def _rest(self, start: Offset) -> Portion:
        """Returns the rest of a version within which the previous batch ended."""
        done = start.files or 0
        if start.is_snapshot:
            whole = self._whole_table(start.version)
        else:
            (whole,) = self._versions(start.version, start.version)
        return Portion(whole.version, whole.files[done:], done, whole.is_snapshot)

    def _whole_table(self, version: int) -> Portion:
        snapshot = self.log.snapshot_at(version)
        files = sorted(snapshot.add_files(), key=lambda add: (add.modification_time, add.path))
        if not self.is_feed:
            return Portion(version, tuple(files), is_snapshot=True)
        at = self.log.committed_at(snapshot)
        return Portion(version, tuple(ChangedFile(add, INSERT, version, at) for add in files), is_snapshot=True)

    def _versions(self, first: int, last: int) -> Iterator[Portion]:
        if first > last:
            return
        if self.is_feed:
            yield from self._changes(first, self.log.snapshot_at(last))
            return
        expected = first
        for commit in self.log.commits(first, last):
            self._check_there(expected, commit.version)
            yield Portion(commit.version, self._added(commit))
            expected += 1
        self._check_there(expected, last + 1)

    def _changes(self, first: int, end: Snapshot) -> Iterator[Portion]:
        for each in changes_between(self.log, first, end):
            yield Portion(each.version, tuple(changed_files(self.log, each, end)))

    def _check_there(self, expected: int, found: int) -> None:
        if found != expected:
            raise VersionNotFoundError(
                f"the stream continues with version {expected}, but its commit is no longer in the log",
                remedy="Start a new stream with a new checkpoint, from a version that still exists",
                table=self.log.name,
            )

    def _added(self, commit: Commit) -> tuple[AddFile, ...]:
        adds = tuple(each for each in commit.actions if isinstance(each, AddFile) and each.data_change)
        if not any(isinstance(each, RemoveFile) and each.data_change for each in commit.actions):
            return adds
        if self.skip_change_commits or (self.ignore_deletes and not adds):
            return ()
        what = "changes" if adds else "deletes"
        others = "" if adds else "`ignoreDeletes` or "
        raise UnsupportedStatementError(
            f"version {commit.version} ({commit.info.operation}) {what} rows, but the stream reads only added rows",
            remedy=f"Set {others}`skipChangeCommits` to skip such versions, or read the changes with `readChangeFeed`",
            table=self.log.name,
            version=commit.version,
        )
