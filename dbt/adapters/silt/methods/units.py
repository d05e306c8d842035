"""Macro API of statements: runs a node's own write and its hooks as units of work."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.meta import AdapterMeta, available
from dbt_common.exceptions import DbtDatabaseError

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.materializations.incremental.microbatch import REMEDY
from dbt.adapters.silt.records.units import Unit, main_unit, model_hook_scope
from dbt.adapters.silt.runs.node_context import is_rebuilt, table_of
from dbt.adapters.silt.runs.submission import Submission

if TYPE_CHECKING:
    from dbt.adapters.contracts.connection import AdapterResponse

    from dbt.adapters.silt.connections import SiltConnectionManager
    from dbt.adapters.silt.engine.sql import ast
    from dbt.adapters.silt.engine.statements.execute.affected_tables import Written
    from dbt.adapters.silt.materializations import seed_checks
    from dbt.adapters.silt.relation import SiltRelation
else:
    ast = lazy_module("dbt.adapters.silt.engine.sql.ast")
    seed_checks = lazy_module("dbt.adapters.silt.materializations.seed_checks")


class UnitMethods(metaclass=AdapterMeta):
    """The part of the adapter that writes each unit of work once."""

    config: Any
    connections: SiltConnectionManager

    @available.parse(lambda *_, **__: None)
    def write_unit(self, sql: str, unit: Unit | None) -> AdapterResponse:
        """Runs a node's own write as its unit of work; of several statements, the last is the unit, the rest parts."""
        try:
            return self.connections.execute(sql, unit=unit)[0]
        except DbtDatabaseError as error:
            if unit is None:
                raise
            if isinstance(error.__cause__, errors.RelationExistsError):
                raise DbtDatabaseError(_created_meanwhile(error.__cause__)) from error.__cause__
            if isinstance(error.__cause__, errors.ReplaceWhereMismatchError) and unit.is_batch:
                raise DbtDatabaseError(f"{errors.sentence(error.msg)} {errors.sentence(REMEDY)}") from error.__cause__
            raise

    @available.parse_none
    def enter_hook(self, model: Mapping[str, Any], role: str, relation: SiltRelation, full_refresh: bool) -> None:
        """Makes each statement until `leave_hook` a unit of work of the node's hook."""
        if self.connections.invocation.writes:
            context = self.connections.invocation.context
            name = ".".join(part for part in (relation.database, relation.schema, relation.identifier) if part)
            rebuilt = full_refresh and model["resource_type"] != "snapshot"
            self.connections.node.context.scope = model_hook_scope(context, model, role, name, rebuilt)
            if self.connections.node.context.hooks is not None:
                self.connections.node.context.hooks.role = role

    @available.parse_none
    def leave_hook(self) -> None:
        self.connections.node.context.scope = None
        if self.connections.node.context.hooks is not None:
            self.connections.node.context.hooks.role = None

    @available.parse_none
    def enter_main(self, sql: str) -> None:
        """Makes the SQL that runs next, `main` of a project's own materialization, the node's own write.

        The own write is the last statement that writes the node's table, or else the last statement that writes any
        table.
        """
        work = self.connections.node.context
        if not self.connections.invocation.writes or not work.is_writing_node or work.has_own_materialization:
            return
        with self.connections.exception_handler(sql):
            warehouse = self.connections.handle.warehouse
            statements = [warehouse.parsed(each) for each in Submission(sql).statements]
            written = [warehouse.written(each) for each in statements]
            index = _index_of_write(written, table_of(work.node, self.config.credentials.database))
        if index is not None and work.scope is None:
            full_refresh = is_rebuilt(work.node, self.connections.invocation.full_refresh)
            unit = self._named_unit(work.node.to_dict(omit_none=True), full_refresh)
            work.named = [unit if number == index else None for number in range(len(statements))]

    @available.parse_none
    def leave_main(self) -> None:
        self.connections.node.context.named = []

    def _named_unit(self, model: Mapping[str, Any], full_refresh: bool) -> Unit | None:
        if not self.connections.invocation.writes:
            return None
        with self.connections.exception_handler("name the unit of work"):
            return main_unit(self.connections.invocation.context, model, full_refresh, checksum_of(model))


def _index_of_write(written: Sequence[Written | None], table: RelationName) -> int | None:
    """Returns the index of the statement that is a node's own write, if any of them writes rows."""
    rows = [(number, each.table) for number, each in enumerate(written) if each and each.effect is ast.Effect.ROWS]
    own = [number for number, name in rows if name == table]
    return own[-1] if own else rows[-1][0] if rows else None


def checksum_of(model: Mapping[str, Any]) -> str | None:
    """Returns the checksum of the node's raw code, or of a seed's file, as dbt has no checksum of a large file."""
    if model["resource_type"] == "seed":
        return hashlib.sha256(seed_checks.seed_file(model).read_bytes()).hexdigest()
    return model["checksum"]["checksum"] if model.get("checksum") else None


def _created_meanwhile(error: errors.RelationExistsError) -> str:
    """Returns the error for a table that another run has created since this run looked for it."""
    happened = "another run has created it since this run looked for it"
    return f"[{error.code}] {error.table}: {happened}. Nothing was written: run it again."
