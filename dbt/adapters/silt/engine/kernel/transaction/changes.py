"""The read set and the changes of a transaction, as values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
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
from dbt.adapters.silt.engine.kernel.table.property_values import IsolationLevel

ENGINE_INFO: Final = f"dbt-silt/{package_version}"
"""The `engineInfo` of every commit of this engine."""

DROP_OPERATION: Final = "DROP TABLE"
"""The operation of the version that ends a log."""

DROPPED_PROPERTY: Final = "silt.dropped"
"""The table property that the last version of a log sets, to the time of the drop."""

RESTORE_OPERATION: Final = "RESTORE"
"""The operation of a version that puts a table back to an earlier one."""

RESTORED_VERSION: Final = "restoredVersion"
"""The parameter of a RESTORE that names a time: the version that it found. Other engines write none."""

NOT_DONE: Final = -1
"""The version of a forgotten transaction identifier: its unit of work is not done, so a rerun does it again."""


@dataclass(frozen=True)
class Operation:
    """The operation of a commit, as the history of the table shows it.

    Attributes:
        name: as in delta-spark: `WRITE`, `MERGE`, `DELETE` ...
        parameters: raw JSON values, as delta-spark writes them for the operation.
        metrics: numbers as text.
    """

    name: str
    parameters: Mapping[str, Json] = field(default_factory=dict)
    metrics: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ReadSet:
    """The part of the table that a transaction has read: rows that match a predicate, and files.

    A statement that replaces all rows, or adds a rule for all rows, has read the whole table.

    Attributes:
        predicates: every row that one of them may match was read.
        paths: the files, spelled as in the log.
        whole_table: everything was read.
        transactions: every transaction identifier was read.
    """

    predicates: tuple[Expression, ...] = ()
    paths: frozenset[str] = frozenset()
    whole_table: bool = False
    transactions: bool = False

    @property
    def is_empty(self) -> bool:
        return not (self.predicates or self.paths or self.whole_table or self.transactions)


@dataclass(frozen=True)
class Changes:
    """The actions of one commit, besides `commitInfo`.

    Attributes:
        transactions: units of work that the commit records as done.
        forgotten: transaction identifiers of units of work that the commit undoes: set back to the version that is
            still valid, or to `NOT_DONE`.
        change_files: changed rows for readers of the change data feed; they do not change the table.
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
        """The actions in the order in which delta-spark writes them."""
        head = (action for action in (self.metadata, self.protocol) if action is not None)
        memory = (*self.transactions, *self.forgotten)
        return (*head, *self.domains, *memory, *self.adds, *self.removes, *self.change_files)

    def is_blind_append(self, reads: ReadSet) -> bool:
        """Whether it only adds files, and they do not depend on anything that it read."""
        return reads.is_empty and not self.removes

    def changes_no_data(self) -> bool:
        """Whether it moves rows between files and changes none (dataChange is false)."""
        files: tuple[AddFile | RemoveFile, ...] = (*self.adds, *self.removes)
        return bool(files) and not any(file.data_change for file in files) and not (self.metadata or self.protocol)


def is_needed(changes: Changes, isolation_level: IsolationLevel) -> bool:
    """Whether a statement that ends in these changes must commit them: all but empty ones.

    An empty commit gives its statement a place in the order of commits, which WriteSerializable needs.
    """
    return bool(changes.actions()) or isolation_level is IsolationLevel.WRITE_SERIALIZABLE


def as_json(parameter: object) -> str:
    """A parameter that is a list or a map as `commitInfo.operationParameters` spells it."""
    return json.dumps(parameter, ensure_ascii=False, separators=(",", ":"))


def as_strings(metrics: Mapping[str, int | None]) -> dict[str, str]:
    """Metrics as `commitInfo.operationMetrics` spells them; unknown ones are left out."""
    return {name: str(value) for name, value in metrics.items() if value is not None}
