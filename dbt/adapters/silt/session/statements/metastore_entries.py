"""Keeps the entries of a metastore (`catalog` in the profile) in step with the tables that statements change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dbt.adapters.silt.engine.catalog.names import RelationName
from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.sql.ast import Statement
from dbt.adapters.silt.engine.warehouse import Warehouse
from dbt.adapters.silt.registration.registration import Registration, Settled


@dataclass(frozen=True)
class MetastoreEntries:
    """The entries of a shell's tables.

    Args:
        registration: the registration in the metastore, if the profile names it.
    """

    warehouse: Warehouse
    registration: Registration | None

    def names(self, statement: Statement) -> tuple[RelationName, ...]:
        """Returns the tables whose entries the statement may change.

        Call it before the statement runs, because a drop removes them.
        """
        return () if self.registration is None else self.warehouse.affected_tables(statement)

    def settle(self, names: tuple[RelationName, ...]) -> Iterator[str]:
        """Registers each table, or removes its entry if the table no longer exists; yields failures as warnings.

        The statement has already been committed.
        """
        for name in names:
            entries = self.registration
            assert entries is not None
            try:
                done = entries.settle(name)
            except SiltError as error:
                others = "" if entries.is_open else "; the same is true of the other tables of this session"
                yield f"{name} is changed, but its entry in the metastore is not{others}: {error}"
            else:
                if done.settled is Settled.TAKEN:
                    yield f"{done}. Drop that entry in the metastore, then run `dbt run-operation silt_register`"
