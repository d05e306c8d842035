"""Macro API of the seed materialization: checks, stages and writes the rows of a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.meta import AdapterMeta, available
from dbt_common.exceptions import DbtDatabaseError

from dbt.adapters.silt.column import SiltColumn
from dbt.adapters.silt.lazy import lazy_module

if TYPE_CHECKING:
    import agate
    from dbt.adapters.contracts.connection import AdapterResponse

    from dbt.adapters.silt.connections import SiltConnectionManager
    from dbt.adapters.silt.materializations import seed_checks, seeds
    from dbt.adapters.silt.records.units import Unit
    from dbt.adapters.silt.relation import SiltRelation
else:
    seed_checks = lazy_module("dbt.adapters.silt.materializations.seed_checks")
    seeds = lazy_module("dbt.adapters.silt.materializations.seeds")


class SeedMethods(metaclass=AdapterMeta):
    """The part of the adapter that loads seeds."""

    connections: SiltConnectionManager
    write_unit: Callable[[str, Unit | None], AdapterResponse]

    def check_seed_file(
        self, model: Mapping[str, Any], types: Mapping[str, str] | None, delimiter: str | None
    ) -> list[str]:
        """Rejects a seed's file for which dbt would fail without naming the cause; returns warnings about it."""
        with self.connections.exception_handler(f"look at the file of {model['name']}"):
            return seed_checks.check_file(model, types or (), delimiter)

    @available.parse_none
    def stage_seed(
        self, name: str, table: agate.Table, relation: SiltRelation, types: Mapping[str, str] | None
    ) -> seeds.StagedSeed:
        """Registers a seed's rows as a temporary view of the session."""
        with self.connections.exception_handler(f"stage {relation}"):
            known = {column: SiltColumn.translate_type(str(kind)) for column, kind in (types or {}).items() if kind}
            return seeds.stage(self.connections.handle.session, name, relation.render(), table, known)

    @available.parse(lambda *_, **__: None)
    def write_seed(self, sql: str, unit: Unit | None, seed: seeds.StagedSeed) -> AdapterResponse:
        """Runs a seed's own write as its unit of work; if a value makes it fail, the error names the value."""
        try:
            return self.write_unit(sql, unit)
        except DbtDatabaseError:
            with self.connections.exception_handler(f"check {seed.view}"):
                seed.check_values(self.connections.handle.session)
            raise
