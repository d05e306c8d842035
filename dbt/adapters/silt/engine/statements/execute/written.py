"""What a statement would leave in a table, as `Warehouse.written` says it."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.silt.engine.catalog.names import RelationName
from dbt.adapters.silt.engine.sql.ast import Effect


@dataclass(frozen=True)
class Written:
    """The table that a statement changes; `table` is None where the statement names it by its path."""

    table: RelationName | None
    effect: Effect
