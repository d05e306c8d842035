"""Macro API of the warnings before a write that takes rows or versions from a table without an error."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.meta import AdapterMeta, available

from dbt.adapters.silt.engine.catalog.relations import RelationEntry, RelationKind
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
    """The part of the adapter that says what a node's write takes away."""

    connections: SiltConnectionManager

    @abstractmethod
    def _find(self, relation: SiltRelation) -> RelationEntry | None:
        """The table or view of that name."""

    @available.parse_none
    def loss_warning(self, model: Mapping[str, Any], existing: SiltRelation | None, target: SiltRelation) -> str | None:
        """What the node's write takes from the table that is there; None if it takes nothing, or there is none.

        Args:
            model: the node that is about to write.
            existing: what dbt has found under the node's name.
            target: what the node writes.
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
        """Whether `--empty` or `--sample` takes rows from the node's table.

        It puts fewer rows in the place of what a query refers to. A python model gets all rows either way.
        """
        refers = model.get("language") == "sql" and model["depends_on"]["nodes"]
        if not refers or not (context.empty or context.sample):
            return False
        full_refresh = full_refresh_of(model["config"], self.connections.invocation.full_refresh)
        return quiet_losses.loses_rows(model["config"], full_refresh)
