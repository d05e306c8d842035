"""Macro API of a write to an existing table: if it fails because of a column, the error names the column."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.meta import available
from dbt_common.exceptions import DbtDatabaseError

from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.materializations.incremental.merge_clause_checks import as_list
from dbt.adapters.silt.methods.units import UnitMethods

if TYPE_CHECKING:
    from dbt.adapters.contracts.connection import AdapterResponse

    from dbt.adapters.silt.column import SiltColumn
    from dbt.adapters.silt.materializations import changed_columns
    from dbt.adapters.silt.records.units import Unit
    from dbt.adapters.silt.relation import SiltRelation
else:
    changed_columns = lazy_module("dbt.adapters.silt.materializations.changed_columns")


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
