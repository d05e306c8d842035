"""Returns the changes of a table on a branch as the changes of a single commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from dbt.adapters.silt.engine.kernel.errors import UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.log.builds import (
    AUDITED_INFO_KEY,
    CLONED_KEY,
    CONTENT_INFO_KEY,
    DEFINITIONS_KEY,
    FILES_KEY,
    INFO_KEY,
    KEYS_INFO_KEY,
    UNITS_KEY,
    TableState,
)
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.maintenance.vacuum import named_files
from dbt.adapters.silt.engine.kernel.publication.net_changes import last_of, net_changes
from dbt.adapters.silt.engine.kernel.publication.prepared import drops
from dbt.adapters.silt.engine.kernel.table.actions import AddCDCFile, AddFile, Json, Metadata, SetTransaction
from dbt.adapters.silt.engine.kernel.table.active_files import files_table
from dbt.adapters.silt.engine.kernel.table.keys import VERIFIED
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER, decode_path, is_absolute
from dbt.adapters.silt.engine.kernel.table.properties import IsolationLevel
from dbt.adapters.silt.engine.kernel.transaction.branch_log import BranchLog
from dbt.adapters.silt.engine.kernel.transaction.changes import RESTORE_OPERATION, Changes
from dbt.adapters.silt.engine.kernel.transaction.competing_commits import WinningCommit
from dbt.adapters.silt.engine.kernel.transaction.enforced_keys import states_keys_at, with_statement
from dbt.adapters.silt.engine.kernel.transaction.positions import is_position

OUTSIDE: Final = (
    "Run it outside of the transaction; a dbt run is a transaction if the profile has `publish: after_tests` or "
    "`publish: after_run`"
)
"""The remedy for a statement that a transaction cannot contain."""


_READ: Final = (DEFINITIONS_KEY, FILES_KEY)
_OF_ROWS: Final = (INFO_KEY, KEYS_INFO_KEY, CONTENT_INFO_KEY, CLONED_KEY)
"""The fields that describe the rows which the table has after a commit."""

_OF_THE_COMMIT: Final = frozenset(
    (*_OF_ROWS, *"timestamp inCommitTimestamp txnId readVersion isolationLevel engineInfo commitAttempts".split())
)
"""The fields that a publication states for its commit as a whole."""


def _no_content() -> None:
    """Returns that a dropped table has no files."""


@dataclass(frozen=True)
class BranchVersions:
    """The versions of a table that a branch has changed.

    Attributes:
        table_id: the id in its metadata.
        base: the version at which the branch begins; -1 if the branch creates the table.
        last_change: the last version on the branch that changed rows; `base` if none did.
        content: returns the hash of the files of its last version; the table must not have been dropped meanwhile.
    """

    table_id: str
    base: int
    last_change: int
    content: Callable[[], str | None] = _no_content


@dataclass(frozen=True)
class BranchChanges:
    """The changes of a table on a branch.

    Attributes:
        changes: their net result.
        versions: the versions of the table on the branch.
        commit_info: fields of `commitInfo` of their commits without attributes in `CommitInfo`.
        user_metadata: the last note of the user on them.
        read_versions: the versions that their statements have read, by table name.
        isolation_level: the least isolation level of their commit; None for the table's.
    """

    changes: Changes
    versions: BranchVersions
    commit_info: dict[str, Json] = field(default_factory=dict)
    user_metadata: str | None = None
    read_versions: Mapping[str, Sequence[int]] = field(default_factory=dict)
    isolation_level: IsolationLevel | None = None


def changes_on(log: BranchLog) -> BranchChanges | None:
    """Returns the net changes of a table on a branch, or None if the branch only reads it.

    If several statements have changed rows, their change data files are left out: one of them may insert a row that
    another deletes. Readers of changes then compare the files that the commit adds and removes.

    Raises:
        CorruptLogError, StorageError: if the branch's log cannot be read.
    """
    commits = commits_on(log)
    if not commits:
        return None
    notes = [commit.info.user_metadata for commit in commits if commit.info.user_metadata is not None]
    changes, base = net_changes(commits), log.base()
    if drops(changes):
        changes = Changes(changes.operation, metadata=changes.metadata)
    if base is not None:
        changes = _with_forgotten(changes, base)
    if not drops(changes):
        changes = with_statement(changes, states_keys_at(commits[-1].version, commits[-1].of(SetTransaction)))
    if sum(commit.changes_rows for commit in commits) > 1:
        changes = replace(changes, change_files=())
    before = None if base is None else base.metadata
    extra = _commit_info(commits, changes, before)
    versions = _versions(commits, log.base_version, before)
    if not drops(changes):
        versions = replace(versions, content=lambda: log.snapshot().content)
    # A restored or audited version, and a version whose rows are known, has no rows that others have added meanwhile.
    restores = any(commit.info.operation == RESTORE_OPERATION for commit in commits)
    is_alone = restores or CONTENT_INFO_KEY in extra or AUDITED_INFO_KEY in extra
    level = IsolationLevel.SERIALIZABLE if is_alone else None
    return BranchChanges(changes, versions, extra, notes[-1] if notes else None, _read_versions(commits), level)


def commits_on(log: BranchLog) -> list[WinningCommit]:
    """Returns the commits of a table on a branch, oldest first."""
    found = log.read_ahead(log.base_version + 1)
    return [WinningCommit(each.version, each.actions(log.name)) for each in found]


def new_files(log: BranchLog) -> list[str]:
    """Returns the files that the branch has added to the table's folder, relative to it: of rows and of vectors.

    Raises:
        CorruptDeletionVectorError: if a commit names a deletion vector that cannot be.
    """
    base = log.base()
    others = set() if base is None else set(named_files(base.files))
    own: set[str] = set()
    for commit in commits_on(log):
        paths = set(named_files(files_table(commit.of(AddFile))))
        paths |= {decode_path(each.path) for each in commit.of(AddCDCFile)}
        if commit.info.operation == RESTORE_OPERATION:
            others |= paths - own  # files of earlier versions of the table, which its history needs
        own |= paths - others
    # A commit of the branch may name any file: anyone who can write to the warehouse can write it.
    return sorted(path for path in own if _is_data_file(path))


def _is_data_file(path: str) -> bool:
    """Returns whether a plain name is in the table's folder and not in its log."""
    return not is_absolute(path) and ".." not in path.split("/") and path.split("/")[0] != LOG_FOLDER


def needed_files(log: BranchLog) -> set[str]:
    """Returns the files that the branch reads, or has written, in the table's folder: relative to it or absolute.

    Raises:
        As `BranchLog.snapshot`.
    """
    base = log.base()
    found = set() if base is None else set(named_files(base.files))
    changes = (each for commit in commits_on(log) for each in commit.of(AddCDCFile))
    return found.union(named_files(log.snapshot().files), (decode_path(each.path) for each in changes))


def check_can_optimize(log: BranchLog) -> None:
    """Checks that a statement may move the rows of the table on its branch to other files.

    Raises:
        UnsupportedStatementError: if the table is append-only, and a statement has added rows.
    """
    if log.snapshot().properties.append_only and any(commit.changes_rows for commit in commits_on(log)):
        raise UnsupportedStatementError(
            "it has the property `delta.appendOnly`, so a transaction that has changed its rows cannot optimize it",
            table=log.name,
            remedy="Optimize it before its rows change, or outside of the transaction",
        )


def _with_forgotten(changes: Changes, base: Snapshot) -> Changes:
    """Returns the changes with the transaction identifiers that a RESTORE sets back among the forgotten identifiers."""
    back = {each.app_id for each in changes.transactions if base.holds((each.app_id, each.version))}
    return replace(
        changes,
        transactions=tuple(each for each in changes.transactions if each.app_id not in back),
        forgotten=tuple(each for each in changes.transactions if each.app_id in back),
    )


def _versions(commits: Sequence[WinningCommit], base: int, before: Metadata | None) -> BranchVersions:
    last = max((commit.version for commit in commits if commit.changes_rows), default=base)
    metadata = last_of(commits, Metadata) or before
    assert metadata is not None
    return BranchVersions(metadata.id, base, last)


def _commit_info(commits: Sequence[WinningCommit], net: Changes, before: Metadata | None) -> dict[str, Json]:
    """Returns the fields of all commits, without facts that do not describe the rows of the net changes."""
    found = {name: value for commit in commits for name, value in commit.info.extra.items()}
    found |= {key: _together(key, commits) for key in _READ if key in found}
    is_cancelled = not net.adds and not net.removes and any(commit.changes_rows for commit in commits)
    for key in _OF_ROWS:
        if key in found and (is_cancelled or _is_changed_since(key, commits, before)):
            del found[key]
    units = _units(commits) if len(commits) > 1 else {}
    return {**found, UNITS_KEY: units} if units else found


def _together(key: str, commits: Sequence[WinningCommit]) -> dict[str, Json]:
    """Returns the fingerprints of all statements; of two that differ, neither is that of the whole: it is unknown."""
    found: dict[str, Json] = {}
    for commit in commits:
        read = commit.info.extra.get(key)
        for name, value in read.items() if isinstance(read, Mapping) else ():
            found[name] = value if found.get(name, value) == value else None
    return found


def _units(commits: Sequence[WinningCommit]) -> dict[str, Json]:
    """Returns the fields of each statement that has a transaction identifier, without facts about the table's rows."""
    return {
        done.app_id: {name: value for name, value in commit.info.to_json().items() if name not in _OF_THE_COMMIT}
        for commit in commits
        for done in commit.of(SetTransaction)
        if not is_position(done.app_id) and done.app_id != VERIFIED
    }


def _is_changed_since(key: str, commits: Sequence[WinningCommit], before: Metadata | None) -> bool:
    """Returns whether rows or columns were changed after the last commit with the field."""
    end = max(number for number, commit in enumerate(commits, 1) if key in commit.info.extra)
    if any(commit.changes_rows for commit in commits[end:]):
        return True
    then, now = last_of(commits[:end], Metadata) or before, last_of(commits, Metadata) or before
    return then is not None and now is not None and TableState.of(then, 0) != TableState.of(now, 0)


def _read_versions(commits: Sequence[WinningCommit]) -> dict[str, list[int]]:
    found: dict[str, set[int]] = {}
    for commit in commits:
        for name, versions in (commit.info.read_versions or {}).items():
            found.setdefault(name, set()).update(versions)
    return {name: sorted(versions) for name, versions in found.items()}
