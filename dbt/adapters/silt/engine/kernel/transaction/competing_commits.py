"""PendingCommit and WinningCommit, the two sides of a conflict, and the error for the loser."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from dbt.adapters.silt.engine.kernel.clock import utc_text
from dbt.adapters.silt.engine.kernel.errors import ConcurrentModificationError
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.actions import Action, AddFile, CommitInfo, RemoveFile, changes_rows
from dbt.adapters.silt.engine.kernel.table.expressions import columns
from dbt.adapters.silt.engine.kernel.table.properties import IsolationLevel
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, ReadSet

T = TypeVar("T")

# The maximum numbers of a conflict's files in the error's details and in its message.
_FILES_IN_DETAILS = 10
_FILES_IN_TEXT = 3


@dataclass(frozen=True)
class PendingCommit:
    """A transaction that is about to commit.

    Attributes:
        base: the snapshot that it is based on.
        isolation_level: see `conflicts.effective_isolation_level`.
        later: the files that winners have added since the base, by `active_files.file_key`.
    """

    base: Snapshot
    changes: Changes
    reads: ReadSet
    isolation_level: IsolationLevel
    later: Mapping[str, AddFile] = field(default_factory=dict)


@dataclass(frozen=True)
class WinningCommit:
    """A commit between the base and this transaction's attempt."""

    version: int
    actions: tuple[Action, ...] = field(repr=False)

    @property
    def info(self) -> CommitInfo:
        return next(iter(self.of(CommitInfo)), CommitInfo())

    @property
    def changes_rows(self) -> bool:
        """Whether it added or removed rows, as `Commit.changes_rows`."""
        return changes_rows(self.actions)

    def of(self, kind: type[T]) -> list[T]:
        """Returns the actions of a kind."""
        return [action for action in self.actions if isinstance(action, kind)]


def conflict(
    kind: type[ConcurrentModificationError],
    what: str,
    winner: WinningCommit,
    pending: PendingCommit,
    files: Sequence[AddFile | RemoveFile] = (),
) -> ConcurrentModificationError:
    """Creates the error for a conflict with a winner.

    Args:
        what: the winner's action, as the end of a sentence that begins with its operation.
        files: the winner's files that the conflict is about.

    Returns:
        An error with the details `version`, `operation`, `commit_info`, `files` (the paths of the first files),
        `num_files`, `partitions` (the files' partition values), all of the winner; and `own_operation`,
        `base_version`, `isolation_level`.
    """
    partitions = _partitions(files, pending.base)
    details: dict[str, Any] = {
        "version": winner.version,
        "operation": winner.info.operation,
        "commit_info": winner.info.to_json(),
        "files": tuple(file.path for file in files[:_FILES_IN_DETAILS]),
        "num_files": len(files),
        "partitions": partitions,
        "own_operation": pending.changes.operation.name,
        "base_version": pending.base.version,
        "isolation_level": pending.isolation_level.value,
    }
    problem = (
        f"{pending.changes.operation.name}, based on version {pending.base.version}, lost to {_title(winner)}, "
        f"which {what}{_listed(files, partitions)}"
    )
    remedy = _hint(pending, partitions) if files else None
    return kind(problem, remedy=remedy, table=pending.base.table, version=pending.base.version, details=details)


def _title(winner: WinningCommit) -> str:
    """Returns the winner's operation and version, and its engine and time if they are known."""
    info = winner.info
    committed_ms = info.in_commit_timestamp or info.timestamp
    by = f" by {info.engine_info}" if info.engine_info else ""
    at = "" if committed_ms is None else f" at {_utc(committed_ms)}"
    return f"{info.operation or 'another writer'} (version {winner.version}, committed{by}{at})"


def _utc(timestamp_ms: int) -> str:
    return utc_text(timestamp_ms)


def _listed(files: Sequence[AddFile | RemoveFile], partitions: Sequence[str]) -> str:
    if not files:
        return ""
    named = ", ".join(file.path for file in files[:_FILES_IN_TEXT])
    more = f" and {len(files) - _FILES_IN_TEXT} more" if len(files) > _FILES_IN_TEXT else ""
    within = f", in the partition {' and '.join(partitions[:_FILES_IN_TEXT])}" if partitions else ""
    return f": {named}{more}{within}"


def _partitions(files: Iterable[AddFile | RemoveFile], base: Snapshot) -> tuple[str, ...]:
    """Returns the distinct partitions of the files, such as `day=1`."""
    names = {field.physical_name: field.name for field in base.schema.fields}
    spelled = (
        "/".join(
            f"{names.get(name, name)}={'null' if value is None else value}"
            for name, value in file.partition_values.items()
        )
        for file in files
        if file.partition_values
    )
    return tuple(dict.fromkeys(spelled))[:_FILES_IN_DETAILS]


def _hint(pending: PendingCommit, partitions: Sequence[str]) -> str | None:
    """Returns how to avoid the conflict next time, or None if the error class's own remedy is enough."""
    partitioning = pending.base.partition_columns
    if pending.reads.is_empty or not partitioning:
        return None
    named = {column.parts[0].lower() for predicate in pending.reads.predicates for column in columns(predicate)}
    if pending.reads.whole_table or not any(name.lower() in named for name in partitioning):
        listed = ", ".join(f"`{name}`" for name in partitioning)
        return (
            f"Nothing was applied: run it again; a condition on the partition column {listed} in its predicate "
            "avoids conflicts with writers of other partitions"
        )
    if partitions:
        return "Nothing was applied: run it again; both read or write the same partition, so run one after the other"
    return None
