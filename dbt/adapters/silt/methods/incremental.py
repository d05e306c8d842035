"""What the incremental materialization asks of the adapter."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from dbt.adapters.base.meta import AdapterMeta, available

from dbt.adapters.silt.column import SiltColumn
from dbt.adapters.silt.materializations.incremental.config import check
from dbt.adapters.silt.materializations.incremental.config_columns import qualified, qualify_condition
from dbt.adapters.silt.materializations.incremental.merge_clauses import (
    MergeClause,
    Sides,
    goes_by_position,
    merge_clauses,
)
from dbt.adapters.silt.materializations.incremental.microbatch import REMEDY, batch_window


class IncrementalMethods(metaclass=AdapterMeta):
    """The part of the adapter that builds the statements of incremental models."""

    @abstractmethod
    def get_column_schema_from_query(self, sql: str) -> list[SiltColumn]:
        """The columns of a query, which is not run."""

    def valid_incremental_strategies(self) -> list[str]:
        return ["append", "merge", "delete+insert", "insert_overwrite", "replace_where", "microbatch"]

    @available.parse(lambda *_, **__: {"any": False, "added": [], "removed": [], "retyped": []})
    def schema_changes(self, source: list[SiltColumn], target: list[SiltColumn]) -> dict[str, Any]:
        """How a query's columns differ from its table's: `added`, `removed`, and `retyped` with the query's type."""
        ours, theirs = ({each.name.lower(): each for each in columns} for columns in (target, source))
        added = [each for name, each in theirs.items() if name not in ours]
        removed = [each for name, each in ours.items() if name not in theirs]
        retyped = [each for name, each in theirs.items() if name in ours and each.dtype != ours[name].dtype]
        return {"any": bool(added or removed or retyped), "added": added, "removed": removed, "retyped": retyped}

    @available.parse_none
    def check_incremental_config(self, config: Mapping[str, Any]) -> None:
        """Raise where the configuration of an incremental model cannot be used."""
        check(config)

    @available.parse_list
    def merge_clauses(
        self, config: Mapping[str, Any], columns: list[SiltColumn], query: str, target: str, source: str
    ) -> list[MergeClause]:
        """The WHEN clauses of a model's merge, between the aliases of its two sides."""
        order = self.get_column_schema_from_query(query) if goes_by_position(config) else []
        names, given = ([each.name for each in found] for found in (columns, order))
        return merge_clauses(config, Sides(names, given, target, source))

    @available
    def qualified(self, text: str, columns: list[SiltColumn], alias: str, setting: str) -> str:
        """A column or an expression of the configuration, its columns qualified by an alias."""
        return qualified(text, [each.name for each in columns], alias, setting)

    @available
    def qualify_condition(self, condition: str, columns: list[SiltColumn], alias: str) -> str:
        """A condition of the configuration, the bare names of these columns in it qualified by an alias."""
        return qualify_condition(condition, [each.name for each in columns], alias)

    @available.parse(lambda *_, **__: "true")
    def batch_window(self, model: Mapping[str, Any], columns: list[SiltColumn], query: str) -> str:
        """The condition that is true for the rows of a microbatch's window."""
        return batch_window(model, columns, self.get_column_schema_from_query, query)

    @available
    def batch_remedy(self) -> str:
        """What to do where a microbatch gives rows outside of its window."""
        return REMEDY
