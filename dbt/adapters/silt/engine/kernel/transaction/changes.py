"""What a transaction has read and what it wants to write, as values."""

from __future__ import annotations

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
from dbt.adapters.silt.engine.kernel.table.properties import IsolationLevel

ENGINE_INFO: Final = f"dbt-silt/{package_version}"
"""The `engineInfo` of every commit of this engine."""

DROP_OPERATION: Final = "DROP TABLE"
"""The operation of the version that ends a log."""

RESTORE_OPERATION: Final = "RESTORE"
"""The operation of a version that puts a table back to an earlier one."""

NOT_DONE: Final = -1
"""The version of a transaction identifier whose work is forgotten: whoever asks does it again."""


@dataclass(frozen=True)
class Operation:
    """What the history of the table shows for a commit.

    Attributes:
        name: by the reference's names: `WRITE`, `MERGE`, `DELETE` ...
        parameters: raw JSON values, as the reference has them for the operation.
        metrics: numbers as text.
    """

    name: str
    parameters: Mapping[str, Json] = field(default_factory=dict)
    metrics: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ReadSet:
    """What of the table a transaction has read: the rows that a predicate holds for, and the files looked into.

    What replaces all that is there, or adds a rule that all rows must keep, has read the whole table.

    Attributes:
        predicates: what was read is what any of them may hold for.
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
        transactions: work that the commit records as done.
        forgotten: transaction identifiers whose work the commit undoes: set back to the version that still holds, or to
            `NOT_DONE`.
        change_files: tell readers of the change data feed which rows changed; they move no row of the table.
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
        """In the order in which the reference writes them."""
        head = (action for action in (self.metadata, self.protocol) if action is not None)
        memory = (*self.transactions, *self.forgotten)
        return (*head, *self.domains, *memory, *self.adds, *self.removes, *self.change_files)

    def is_blind_append(self, reads: ReadSet) -> bool:
        """Whether it only adds, and what it adds hangs on nothing that it read."""
        return reads.is_empty and not self.removes

    def only_rearranges(self) -> bool:
        """Whether it moves rows between files and changes none."""
        files: tuple[AddFile | RemoveFile, ...] = (*self.adds, *self.removes)
        return bool(files) and not any(file.data_change for file in files) and not (self.metadata or self.protocol)


def is_needed(changes: Changes, isolation_level: IsolationLevel) -> bool:
    """Whether a statement that ends in these changes must commit them: all but empty ones.

    An empty commit orders its statement among the others, which WriteSerializable asks for.
    """
    return bool(changes.actions()) or isolation_level is IsolationLevel.WRITE_SERIALIZABLE


def as_strings(metrics: Mapping[str, int | None]) -> dict[str, str]:
    """Metrics as `commitInfo.operationMetrics` spells them; those that are not known are left out."""
    return {name: str(value) for name, value in metrics.items() if value is not None}
