"""The table that a statement would change, as `Warehouse.written` returns it."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.silt.engine.catalog.names import RelationName
from dbt.adapters.silt.engine.sql.ast import Effect


@dataclass(frozen=True)
class Written:
    """The table that a statement changes; `table` is None if the statement names it by its path."""

    table: RelationName | None
    effect: Effect
