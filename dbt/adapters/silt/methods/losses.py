"""Macro API of the warnings before a write that removes rows or versions from a table without an error."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.meta import AdapterMeta, available

from dbt.adapters.silt.engine.catalog.names import RelationEntry, RelationKind
from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.runs.node_context import full_refresh_of

if TYPE_CHECKING:
    from dbt.adapters.silt.connections import SiltConnectionManager
    from dbt.adapters.silt.materializations import quiet_losses
    from dbt.adapters.silt.records.units import RunContext
    from dbt.adapters.silt.relation import SiltRelation
else:
    quiet_losses = lazy_module("dbt.adapters.silt.materializations.quiet_losses")


class LossMethods(metaclass=AdapterMeta):
    """The part of the adapter that warns about the rows and versions that a node's write removes."""

    connections: SiltConnectionManager

    @abstractmethod
    def _find(self, relation: SiltRelation) -> RelationEntry | None:
        """Returns the table or view of that name."""

    @available.parse_none
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
