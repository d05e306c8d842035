"""Combines the commits of a table on a branch into the changes of a single commit.

A file that the branch adds and removes again is not published. If an OPTIMIZE of the branch has moved rows that the
branch also changes, the published files are changes of rows (dataChange=true): a reader of changes skips files with
dataChange=false, and would miss them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from dbt.adapters.silt.engine.kernel.table import actions
from dbt.adapters.silt.engine.kernel.table.active_files import file_key
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, as_json
from dbt.adapters.silt.engine.kernel.transaction.competing_commits import WinningCommit

T = TypeVar("T")

TRANSACTION_OPERATION: Final = "TRANSACTION"
"""The operation of a commit that holds the changes of several statements."""


def net_changes(commits: Sequence[WinningCommit]) -> Changes:
    """Returns the changes of a commit that has the effect of all commits, oldest first."""
    files = _Files()
    for number, commit in enumerate(commits):
        for remove in commit.of(actions.RemoveFile):
            files.remove(number, remove)
        for add in commit.of(actions.AddFile):
            files.add(number, add)
    changing = files.linked_to([number for number, commit in enumerate(commits) if commit.changes_rows])
    return Changes(
        _operation(commits),
        tuple(replace(add, data_change=add.data_change or by in changing) for by, add in files.adds.values()),
        tuple(replace(each, data_change=each.data_change or by in changing) for by, each in files.removes.values()),
        last_of(commits, actions.Metadata),
        last_of(commits, actions.Protocol),
        tuple({each.app_id: each for commit in commits for each in commit.of(actions.SetTransaction)}.values()),
        tuple({each.domain: each for commit in commits for each in commit.of(actions.DomainMetadata)}.values()),
        tuple(each for commit in commits for each in commit.of(actions.AddCDCFile)),
    )


def last_of(commits: Sequence[WinningCommit], kind: type[T]) -> T | None:
    """Returns the newest action of a kind."""
    found = [each for commit in commits for each in commit.of(kind)]
    return found[-1] if found else None


def key_of(file: actions.AddFile | actions.RemoveFile) -> str:
    """Returns the key of a logical file; see `file_key`."""
    return file_key(file.path, file.deletion_vector)


@dataclass(frozen=True)
class _Files:
    """The files that commits add and remove in the end, each with the number of its commit.

    Attributes:
        links: pairs of commits, the second of which has undone a part of the first.
    """

    adds: dict[str, tuple[int, actions.AddFile]] = field(default_factory=dict)
    removes: dict[str, tuple[int, actions.RemoveFile]] = field(default_factory=dict)
    links: list[tuple[int, int]] = field(default_factory=list)

    def remove(self, number: int, file: actions.RemoveFile) -> None:
        added = self.adds.pop(key_of(file), None)
        if added is None:
            self.removes[key_of(file)] = (number, file)
        else:
            self.links.append((added[0], number))

    def add(self, number: int, file: actions.AddFile) -> None:
        removed = self.removes.pop(key_of(file), None)
        if removed is None:
            self.adds[key_of(file)] = (number, file)
        else:
            self.links.append((removed[0], number))

    def linked_to(self, commits: Sequence[int]) -> set[int]:
        """Returns the commits that are linked to any of these, directly or through further commits."""
        found: set[int] = set()
        new = set(commits)
        while new:
            found |= new
            new = set(self._neighbours(found)) - found
        return found

    def _neighbours(self, commits: set[int]) -> Iterator[int]:
        for first, second in self.links:
            if first in commits:
                yield second
            if second in commits:
                yield first


def _operation(commits: Sequence[WinningCommit]) -> Operation:
    """Returns the operation of the only commit, or an operation that lists the operations of all commits."""
    info = commits[-1].info
    if len(commits) == 1:
        return Operation(info.operation or "", info.operation_parameters, info.operation_metrics or {})
    names = [commit.info.operation for commit in commits]
    return Operation(TRANSACTION_OPERATION, {"operations": as_json(names)})
