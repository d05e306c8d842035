"""Macro API of a write to an existing table: names the column of a failure, and warns about lost rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.meta import AdapterMeta, available
from dbt_common.exceptions import DbtDatabaseError

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationEntry, RelationKind
from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.materializations.incremental.merge_clause_checks import as_list
from dbt.adapters.silt.methods.units import UnitMethods
from dbt.adapters.silt.runs.node_context import full_refresh_of

if TYPE_CHECKING:
    from dbt.adapters.contracts.connection import AdapterResponse

    from dbt.adapters.silt.column import SiltColumn
    from dbt.adapters.silt.connections import SiltConnectionManager
    from dbt.adapters.silt.materializations import changed_columns, quiet_losses
    from dbt.adapters.silt.records.units import RunContext, Unit
    from dbt.adapters.silt.relation import SiltRelation
else:
    changed_columns = lazy_module("dbt.adapters.silt.materializations.changed_columns")
    quiet_losses = lazy_module("dbt.adapters.silt.materializations.quiet_losses")


class ChangeMethods(UnitMethods):
    """The part of the adapter that writes incremental models and snapshots to their tables."""

    @abstractmethod
    def get_column_schema_from_query(self, sql: str) -> list[SiltColumn]:
        """Returns the columns of a query, which is not run."""

    @abstractmethod
    def get_columns_in_relation(self, relation: SiltRelation) -> list[SiltColumn]:
        """Returns the columns of a table."""

    @available.parse(lambda *_, **__: None)
    def write_change(
        self, sql: str, unit: Unit | None, model: Mapping[str, Any], relation: SiltRelation, query: str
    ) -> AdapterResponse:
        """Runs a node's write to an existing table; if it fails because of a column, the error names the column.

        Args:
            model: the node.
            relation: its table.
            query: its query, whose columns are compared with the table's after a failure.
        """
        try:
            response: AdapterResponse = self.write_unit(sql, unit)
            return response
        except DbtDatabaseError as error:
            self._explain(error, model, relation, query)
            raise

    @available.parse_list
    def columns_of_changes(
        self, sql: str, model: Mapping[str, Any], relation: SiltRelation, query: str
    ) -> list[SiltColumn]:
        """Returns the columns of a query that compares a node's query with its table; fails like `write_change`."""
        try:
            return self.get_column_schema_from_query(sql)
        except DbtDatabaseError as error:
            self._explain(error, model, relation, query)
            raise

    def _explain(self, error: DbtDatabaseError, model: Mapping[str, Any], relation: SiltRelation, query: str) -> None:
        """Raises the error that names the column for which a write failed; returns if it failed for another reason."""
        try:
            given = self.get_column_schema_from_query(query)
        except DbtDatabaseError:  # the query itself is wrong, as the first error reports
            return
        config = model["config"]
        columns = changed_columns.ChangedColumns(
            str(relation.relation_name(self.config.credentials.database)),
            {each.name: each.dtype for each in given},
            {each.name: each.dtype for each in self.get_columns_in_relation(relation)},
            as_list(config.get("unique_key")),
            config.get("materialized") == "snapshot",
        )
        explained = columns.explained(error.msg, error.__cause__)
        if explained is not None:
            raise DbtDatabaseError(str(explained)) from error.__cause__


class LossMethods(metaclass=AdapterMeta):
    """The part of the adapter that warns about the rows and versions that a node's write removes."""

    connections: SiltConnectionManager

    @abstractmethod
    def _find(self, relation: SiltRelation) -> RelationEntry | None:
        """Returns the table or view of that name."""

    def loss_warning(self, model: Mapping[str, Any], existing: SiltRelation | None, target: SiltRelation) -> str | None:
        """Returns the warning about a node's write that removes rows or versions from an existing table, if it does.

        Args:
            model: the node that is about to write.
            existing: the relation that dbt has found under the node's name.
            target: the relation that the node writes.
        """
        if existing is None or not existing.is_table:
            return None
        with self.connections.exception_handler(f"look at {existing}"):
            entry = self._find(existing)
            if entry is None or entry.kind is not RelationKind.TABLE:
                return None
            log = self.connections.catalog.table(entry.name)
            if target.is_view:
                return quiet_losses.replaced_by_view(entry.name, log)
            context = self.connections.invocation.context
            return quiet_losses.emptied(entry.name, log.snapshot(), context) if self._empties(model, context) else None

    def _empties(self, model: Mapping[str, Any], context: RunContext) -> bool:
        """Returns whether `--empty` or `--sample` removes rows from the node's table.

        The flags reduce the rows that a query's references return. A python model reads all rows in any case.
        """
        refers = model.get("language") == "sql" and model["depends_on"]["nodes"]
        if not refers or not (context.empty or context.sample):
            return False
        full_refresh = full_refresh_of(model["config"], self.connections.invocation.full_refresh)
        return quiet_losses.loses_rows(model["config"], full_refresh)
