"""A warehouse in memory whose tables are changed by units of work; each commit names its author."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from dbt.adapters.silt.engine.catalog import rollback, rollback_plan
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationKind, RelationName
from dbt.adapters.silt.engine.catalog.rollback import Rollback, RollbackSettings
from dbt.adapters.silt.engine.catalog.rollback_plan import Findings, RollbackScope
from dbt.adapters.silt.engine.kernel.log.history import Commit
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.actions import SetTransaction
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE
from dbt.adapters.silt.engine.kernel.transaction import commit as transaction
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings
from tests.fixed_clock import FixedClock
from tests.memory_store import MemoryStore
from tests.simulation.rows_table import RowsTable

_AUTHOR, _UNDONE = "author", "undone"


def named(identifier: str) -> RelationName:
    return RelationName("silt", "main", identifier)


def work_of(author: str) -> RollbackScope:
    """Returns all commits of an author."""
    return RollbackScope(
        is_commit=lambda commit: author_of(commit) == author,
        is_unit=lambda app_id: app_id.startswith(f"{author}/"),
        undoes=lambda commit: commit.info.extra.get(_UNDONE) == author,
    )


def author_of(commit: Commit) -> str:
    return str(commit.info.extra.get(_AUTHOR))


def settings_of(author: str, **options: bool) -> RollbackSettings:
    return RollbackSettings(f"run {author}", author_of, commit_info={_UNDONE: author}, **options)


class Works:
    """The tables of one warehouse.

    Args:
        store: of the warehouse.
        seed: of the clock, which also creates the ids.
    """

    def __init__(self, store: Store | None = None, seed: int = 1) -> None:
        self.store = store or MemoryStore()
        self.clock = FixedClock(seed=seed)
        self.catalog = Catalog({"silt": self.store}, self.clock)
        self.catalog.create_schema("silt", "main", if_not_exists=True)

    def reopened(self, seed: int) -> Works:
        """Opens the same warehouse as another process."""
        return Works(self.store, seed)

    def create(self, identifier: str, author: str, rows: Mapping[int, int]) -> None:
        """Creates a table and records its unit of work."""
        log = self.catalog.new_table(named(identifier))
        self._table(log, author).create(rows)

    def append(self, identifier: str, author: str, rows: Mapping[int, int], unit: str = "main") -> None:
        """Runs a unit of work, unless the table holds it."""
        table = self.table(identifier, author)
        txn = SetTransaction(f"{author}/{identifier}/{unit}", 1)
        if (table.log.snapshot().transaction_version(txn.app_id) or -1) < txn.version:
            table.append(rows, txn)

    def double(self, identifier: str, author: str) -> None:
        """Changes every row of a table."""
        self.table(identifier, author).rewrite(TRUE, lambda _, amount: amount * 2)

    def say(self, identifier: str, author: str, operation: str, **parts: object) -> None:
        """Commits the operation with these changes, or without changes."""
        table = self.table(identifier, author)
        changes = Changes(Operation(operation), **parts)  # type: ignore[arg-type]
        transaction.commit(table.log, table.log.snapshot(), changes, ReadSet(), table.settings)

    def describe(self, identifier: str, author: str, text: str) -> None:
        """Changes a table's comment."""
        metadata = replace(self.log(identifier).snapshot().metadata, description=text)
        self.say(identifier, author, "SET TBLPROPERTIES", metadata=metadata)

    def find(self, author: str) -> Findings:
        return rollback_plan.find(self.catalog, self.names(), work_of(author))

    def roll_back(self, author: str, **options: bool) -> Rollback:
        return rollback.roll_back(self.catalog, self.find(author), work_of(author), settings_of(author, **options))

    def names(self) -> Iterable[RelationName]:
        relations = self.catalog.relations("silt", "main")
        return [each.name for each in relations if each.kind is RelationKind.TABLE]

    def log(self, identifier: str) -> DeltaLog:
        return self.catalog.table(named(identifier))

    def table(self, identifier: str, author: str = "") -> RowsTable:
        return self._table(self.log(identifier), author)

    def rows(self) -> dict[str, dict[int, int]]:
        return {name.identifier: self.table(name.identifier).rows() for name in self.names()}

    def versions(self) -> dict[str, int]:
        return {name.identifier: self.log(name.identifier).snapshot().version for name in self.names()}

    def unit(self, identifier: str, author: str, unit: str = "main") -> int | None:
        """Returns the version that the table records of a unit of work."""
        return self.log(identifier).snapshot().transaction_version(f"{author}/{identifier}/{unit}")

    def _table(self, log: DeltaLog, author: str) -> RowsTable:
        return RowsTable(log, CommitSettings(commit_info={_AUTHOR: author}))
