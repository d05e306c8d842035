"""Macro API of audits: adds the tests of a node to its write, and reports their verdicts in place of the tests."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.meta import AdapterMeta, available
from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.silt.dbt_seams.command_state import flags
from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.runs.response import SiltResponse
from dbt.adapters.silt.runs.tests_not_run import KnownResult

if TYPE_CHECKING:
    from dbt.adapters.silt.connections import SiltConnectionManager
    from dbt.adapters.silt.dbt_seams import definitions
    from dbt.adapters.silt.engine.audits.audit import Audit, Audits
    from dbt.adapters.silt.materializations import audits, reuse
    from dbt.adapters.silt.records.units import Unit
    from dbt.adapters.silt.relation import SiltRelation
    from dbt.adapters.silt.runs import agate_tables
else:
    agate_tables = lazy_module("dbt.adapters.silt.runs.agate_tables")
    audits = lazy_module("dbt.adapters.silt.materializations.audits")
    definitions = lazy_module("dbt.adapters.silt.dbt_seams.definitions")
    reuse = lazy_module("dbt.adapters.silt.materializations.reuse")

logger = AdapterLogger("Silt")


class AuditMethods(metaclass=AdapterMeta):
    """The part of the adapter that lets tests judge rows before their commit."""

    config: Any
    connections: SiltConnectionManager
    Relation: type[SiltRelation]
    get_relation: Callable[..., Any]
    one_query: Callable[[str], str]
    _macro_resolver: Any

    def with_audits(
        self, unit: Unit | None, model: Mapping[str, Any], relation: SiltRelation, selected: Collection[str]
    ) -> Unit | None:
        """Returns the unit of a node's own write with the tests that judge its rows before their commit.

        Args:
            selected: the unique ids of the nodes that the command builds.
        """
        config, context = model["config"], self.connections.node.context
        context.audited = ()
        if unit is None or not audits.writes_table(model):
            return unit
        if not audits.is_audited(config, self.config.credentials.audit):
            return unit
        if reuse.is_switched_off(self.connections.invocation.variables, audits.VARIABLE):
            logger.info(f"{model['name']}: not audited, because the variable `{audits.VARIABLE}` is false")
            return unit
        named, found = self._audits(model, relation, unit.run_id, selected)
        if not found:
            return unit
        if audits.is_verdict_on_table(named, model):
            context.audited = found
        return replace(unit, audits=named)

    def audits_of_model(self, model: Mapping[str, Any]) -> Audits:
        """Returns the tests that judge the rows of a node, as they are now; a variable does not switch them off."""
        relation = self.Relation.create_from(self.config, self._macro_resolver.nodes[model["unique_id"]])
        return self._audits(model, relation, "", ())[0]

    def _audits(
        self, model: Mapping[str, Any], relation: SiltRelation, run_id: str, selected: Collection[str]
    ) -> tuple[Audits, tuple[str, ...]]:
        """Returns the audits of a node, and the unique ids of their tests."""
        nodes, node = self._macro_resolver.nodes, model["unique_id"]
        tests = audits.NodeTests(nodes, node, selected, self._exists).before_commit()
        found = {each.unique_id: audit for each in tests if (audit := self._audit(each)) is not None}
        return audits.audits_of(model["config"], tuple(found.values()), run_id, node, str(relation)), tuple(found)

    def _exists(self, node: Any) -> bool:
        relation = self.Relation.create_from(self.config, node)
        return self.get_relation(relation.database, relation.schema, relation.identifier) is not None

    def _audit(self, test: Any) -> Audit | None:
        """Returns a test as an audit; None if its code looks at the warehouse, which does not show the new rows yet."""
        context = self.connections.node.context
        before, query = context.looks, None
        try:
            query = self.one_query(definitions.compiled_query(test, self.config, self._macro_resolver))
        except Exception:
            if context.looks == before:
                raise
        if query is None or context.looks != before:
            logger.debug(f"{test.name} runs after the commit, because its code looks at the warehouse")
            return None
        return audits.audit_of(test, query, self._place_of_failures(test))

    def _place_of_failures(self, test: Any) -> str | None:
        """Returns the table in which a test stores its failing rows; None if it does not, as dbt decides."""
        own = test.config.store_failures
        if not (getattr(flags(), "STORE_FAILURES", False) if own is None else own):
            return None
        return str(self.Relation.create_from(self.config, test))

    @available.parse_none
    def audited_test(self, test: Mapping[str, Any]) -> KnownResult | None:
        """Returns the verdict of a test that has judged the last write of its node in this command; None if it must
        run.
        """
        found = self.connections.node.audited.take(test["unique_id"])
        if found is None:
            return None
        is_failure = found.result.status == "fail"
        row = {
            "failures": found.result.failures,
            "should_warn": is_failure or found.result.status == "warn",
            "should_error": is_failure,
        }
        return KnownResult(SiltResponse.of_audited_test(found.result, found.write), agate_tables.of_rows([row]))
