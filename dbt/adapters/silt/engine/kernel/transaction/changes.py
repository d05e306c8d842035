"""The read set and the changes of a transaction as values, and the in-commit timestamps of changes.

Source: the Delta specification, section "In-Commit Timestamps".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from dbt.adapters.silt.__version__ import version as package_version
from dbt.adapters.silt.engine.kernel.table.actions import (
    Action,
    AddCDCFile,
    AddFile,
    DomainMetadata,
    Json,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from dbt.adapters.silt.engine.kernel.table.expressions import Expression
from dbt.adapters.silt.engine.kernel.table.properties import (
    ENABLEMENT_TIMESTAMP,
    ENABLEMENT_VERSION,
    IsolationLevel,
    TableProperties,
)

ENGINE_INFO: Final = f"dbt-silt/{package_version}"
"""The `engineInfo` of every commit of this engine."""

DROP_OPERATION: Final = "DROP TABLE"
"""The operation of a log's last version."""

DROPPED_PROPERTY: Final = "silt.dropped"
"""The table property that the last version of a log sets, to the time of the drop."""

RESTORE_OPERATION: Final = "RESTORE"
"""The operation of a version that restores an earlier version."""

RESTORED_VERSION: Final = "restoredVersion"
"""The parameter of a RESTORE to a time: the version that the time resolved to. Other engines do not write it."""

NOT_DONE: Final = -1
"""The version of a forgotten transaction identifier: its unit of work was undone, so a rerun does it again."""

_PROVENANCE = (ENABLEMENT_VERSION, ENABLEMENT_TIMESTAMP)


@dataclass(frozen=True)
class Operation:
    """The operation of a commit, as the history of the table shows it.

    Attributes:
        name: the name that delta-spark uses: `WRITE`, `MERGE`, `DELETE` ...
        parameters: raw JSON values, as delta-spark writes them for the operation.
        metrics: numbers as strings.
    """

    name: str
    parameters: Mapping[str, Json] = field(default_factory=dict)
    metrics: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ReadSet:
    """The part of the table that a transaction has read: rows that match a predicate, and files.

    A statement that replaces all rows, or adds a rule for all rows, has read the whole table.

    Attributes:
        predicates: every row that may match any of these predicates was read.
        paths: the files that were read, spelled as in the log.
        whole_table: whether everything was read.
        transactions: whether every transaction identifier was read.
    """

    predicates: tuple[Expression, ...] = ()
    paths: frozenset[str] = frozenset()
    whole_table: bool = False
    transactions: bool = False

    @property
    def is_empty(self) -> bool:
        return not (self.predicates or self.paths or self.whole_table or self.transactions)


def merged_reads(first: ReadSet, second: ReadSet) -> ReadSet:
    """Returns the union of two read sets."""
    return ReadSet(
        predicates=(*first.predicates, *(each for each in second.predicates if each not in first.predicates)),
        paths=first.paths | second.paths,
        whole_table=first.whole_table or second.whole_table,
        transactions=first.transactions or second.transactions,
    )


@dataclass(frozen=True)
class Changes:
    """The actions of one commit, besides `commitInfo`.

    Attributes:
        transactions: units of work that the commit records as done.
        forgotten: transaction identifiers of units of work that the commit undoes, each with the version that is
            still valid, or `NOT_DONE`.
        change_files: files of changed rows for readers of the change data feed; they do not change the table.
    """

    operation: Operation
    adds: tuple[AddFile, ...] = ()
    removes: tuple[RemoveFile, ...] = ()
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    transactions: tuple[SetTransaction, ...] = ()
    domains: tuple[DomainMetadata, ...] = ()
    change_files: tuple[AddCDCFile, ...] = ()
    forgotten: tuple[SetTransaction, ...] = ()

    def actions(self) -> tuple[Action, ...]:
        """Returns the actions in the order in which delta-spark writes them."""
        head = (action for action in (self.metadata, self.protocol) if action is not None)
        memory = (*self.transactions, *self.forgotten)
        return (*head, *self.domains, *memory, *self.adds, *self.removes, *self.change_files)

    def is_blind_append(self, reads: ReadSet) -> bool:
        """Returns whether the commit only adds files whose rows do not depend on anything it read."""
        return reads.is_empty and not self.removes

    def changes_no_data(self) -> bool:
        """Returns whether the commit only moves rows between files (dataChange is false)."""
        files: tuple[AddFile | RemoveFile, ...] = (*self.adds, *self.removes)
        return bool(files) and not any(file.data_change for file in files) and not (self.metadata or self.protocol)


def is_needed(changes: Changes, isolation_level: IsolationLevel) -> bool:
    """Returns whether a statement must commit these changes: always, unless they are empty.

    Under WriteSerializable empty changes are committed too, to give the statement a place in the order of commits.
    """
    return bool(changes.actions()) or isolation_level is IsolationLevel.WRITE_SERIALIZABLE


def as_json(parameter: object) -> str:
    """Formats a list or a map as a parameter of `commitInfo.operationParameters`."""
    return json.dumps(parameter, ensure_ascii=False, separators=(",", ":"))


def as_strings(metrics: Mapping[str, int | None]) -> dict[str, str]:
    """Formats metrics for `commitInfo.operationMetrics`, without unknown values."""
    return {name: str(value) for name, value in metrics.items() if value is not None}


def has_in_commit_timestamps(metadata: Metadata | None) -> bool:
    """Returns whether the commits of a table with this metadata have an in-commit timestamp."""
    return metadata is not None and TableProperties(metadata.configuration).enable_in_commit_timestamps


def needs_in_commit_timestamp(base: Metadata | None, changes: Changes) -> bool:
    """Returns whether a commit of these changes has an in-commit timestamp, by its own or else the base's metadata."""
    return has_in_commit_timestamps(changes.metadata or base)


def in_commit_timestamp(now_ms: int, previous_ms: int) -> int:
    """Returns the time of a commit: now, but always later than the commit before it."""
    return max(now_ms, previous_ms + 1)


def with_enablement(base: Metadata | None, changes: Changes, version: int, timestamp_ms: int) -> Changes:
    """Adds the properties that record the first version with an in-commit timestamp.

    Args:
        base: the table's metadata before the commit; None for its first commit, which needs no such properties.
        version, timestamp_ms: the version and time of the commit.
    """
    metadata = changes.metadata
    if base is None or metadata is None or not has_in_commit_timestamps(metadata):
        return changes
    configuration = {key: value for key, value in metadata.configuration.items() if key not in _PROVENANCE}
    if has_in_commit_timestamps(base):
        configuration |= {key: value for key, value in base.configuration.items() if key in _PROVENANCE}
    else:
        configuration |= {ENABLEMENT_VERSION: str(version), ENABLEMENT_TIMESTAMP: str(timestamp_ms)}
    return replace(changes, metadata=replace(metadata, configuration=configuration))
