"""Decides whether a node is reused, cloned from another target or built, for its materialization and for `silt why`."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.meta import available
from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.silt.dbt_seams.command_state import flags
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationEntry, RelationKind, RelationName
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.methods.units import UnitMethods, checksum_of
from dbt.adapters.silt.runs.node_context import log_of

if TYPE_CHECKING:
    from dbt.adapters.contracts.connection import AdapterResponse

    from dbt.adapters.silt.engine.builds import decision as reuse_decision
    from dbt.adapters.silt.engine.builds import passed_tests, present
    from dbt.adapters.silt.engine.kernel.log.builds import Build, BuildFacts
    from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
    from dbt.adapters.silt.materializations import reached_macros, reuse
    from dbt.adapters.silt.materializations.external import project_files
    from dbt.adapters.silt.methods import other_targets
    from dbt.adapters.silt.records.units import Unit
    from dbt.adapters.silt.relation import SiltRelation
    from dbt.adapters.silt.runs import response as responses
    from dbt.adapters.silt.runs.response import SiltResponse
else:
    passed_tests = lazy_module("dbt.adapters.silt.engine.builds.passed_tests")
    present = lazy_module("dbt.adapters.silt.engine.builds.present")
    reuse_decision = lazy_module("dbt.adapters.silt.engine.builds.decision")
    reached_macros = lazy_module("dbt.adapters.silt.materializations.reached_macros")
    reuse = lazy_module("dbt.adapters.silt.materializations.reuse")
    other_targets = lazy_module("dbt.adapters.silt.methods.other_targets")
    project_files = lazy_module("dbt.adapters.silt.materializations.external.project_files")
    responses = lazy_module("dbt.adapters.silt.runs.response")

logger = AdapterLogger("Silt")


class BuildMethods(UnitMethods):
    """The part of the adapter that compares the rows that a build would write with the rows of existing tables."""

    _macro_resolver: Any
    _facts: reuse.ProjectFacts | None = None

    @abstractmethod
    def _find(self, relation: SiltRelation) -> RelationEntry | None:
        """Returns the table or view of that name."""

    def _reused_result(
        self, unit: Unit | None, model: Mapping[str, Any], relation: SiltRelation, full_refresh: bool
    ) -> SiltResponse | None:
        """Returns the response of a node that is reused; None if it is built, or has no `reuse: unchanged`."""
        if model["config"].get("materialized") == "view":
            return self._reused_view(model, relation)
        if unit is None or unit.build is None:
            return None
        with self.connections.exception_handler(f"look for the last build of {relation}"):
            entry = self._find(relation)
            is_table = entry is not None and entry.kind is RelationKind.TABLE
            log = self.connections.catalog.table(entry.name) if entry is not None and is_table else None
            if log is not None and log.snapshot().holds(unit.txn):
                return None
            decision = None if log is None else self._reuse(unit.build, model, log, full_refresh)
        note = "; its hooks did not run" if reuse.has_hooks(model) else ""
        if isinstance(decision, reuse_decision.Reused):
            response = responses.SiltResponse.of_reuse(decision, note)
            self.connections.sessions.runner.note_reuse(response)
            return response
        self.connections.node.context.built_because = None if decision is None else str(decision)
        # A seed replaces no view, unless its hooks drop the view first.
        is_refused = entry is not None and not is_table and model["resource_type"] == "seed"
        return None if is_refused or self._is_built_anyway(full_refresh) else self._cloned(unit, model, relation, note)

    def _reused_view(self, model: Mapping[str, Any], relation: SiltRelation) -> SiltResponse | None:
        invocation, context = self.connections.invocation, self.connections.node.context
        is_partial = invocation.context.empty or invocation.context.sample
        has_hooks = reuse.has_hooks(model) or reuse.has_hooks_after(model)
        if is_partial or has_hooks or not reuse.is_reusable(model, self.config.credentials.reuse):
            return None
        build = reuse.build_of_view(model, self._project_facts(), time.time_ns() // 1_000_000)
        context.test = build
        with self.connections.exception_handler(f"look for the last creation of {relation}"):
            entry, known = self._find(relation), self._created_views()
            last = known.find(build.owner)
            if entry is None or entry.kind is not RelationKind.VIEW or last is None:
                return None
            build = passed_tests.of_view(build, self.connections.catalog.view(entry.name))
            code, files = str(model.get("compiled_code") or ""), self.connections.sessions.listed_files
            decision = known.decide(build, last, code, files)
        if isinstance(decision, reuse_decision.Reused) and not self._is_built_anyway(invocation.full_refresh):
            return responses.SiltResponse.of_view(last)
        context.built_because = str(decision)
        return None

    @available.parse(lambda *_, **__: None)
    def write_view(self, sql: str, existing: SiltRelation | None) -> AdapterResponse:
        """Creates a view; replaces a table of that name in a single step if the run has seen the table."""
        response = self.connections.execute(sql, replace_tables=existing is not None and existing.is_table)[0]
        facts = self.connections.node.context.facts
        if facts is not None and isinstance(response, responses.SiltResponse):
            response.reason = ", ".join(facts.unknown) or self.connections.node.context.built_because
            try:
                self._created_views().note(passed_tests.PassedTest(facts, self.connections.invocation.run_id))
            except errors.SiltError as error:
                logger.debug(f"The view is not recorded, so it will be created again: {error}")
        return response

    def _created_views(self) -> passed_tests.PassedTests:
        return passed_tests.PassedTests(self.connections.catalog, self.config.credentials.database)

    def _is_built_anyway(self, full_refresh: bool) -> bool:
        return full_refresh or reuse.is_switched_off(self.connections.invocation.variables)

    def _cloned(self, unit: Unit, model: Mapping[str, Any], relation: SiltRelation, note: str) -> SiltResponse | None:
        """Clones the table of another target if it holds the rows that the build would write; None if not."""
        build, context = unit.build, self.connections.node.context
        if build is None or (name := self.clone_target(model)) is None:
            return None
        with self.connections.exception_handler(f"look for the table of {relation} in the target {name}"):
            found = self._clone_source(build, model, name)
        if isinstance(found, reuse_decision.Built):
            context.built_because = "; ".join(each for each in (context.built_because, *found.reasons) if each)
            return None
        last, version, known = found
        source = ".".join(map(quote, last.table.split(".", 2)))
        text = f"create or replace table {relation} shallow clone {source} version as of {version}"
        context.built_because = None
        response = self.write_unit(text, replace(unit, build=replace(build, known=known)))
        assert isinstance(response, responses.SiltResponse)
        response.note_clone(reuse_decision.Cloned(last), note)
        return response

    def clone_target(self, model: Mapping[str, Any]) -> str | None:
        """Returns the other target whose table of a node may be cloned, unless `--vars` switch reuse off."""
        name = reuse.source_target(model)
        is_other = name != str(getattr(self.config, "target_name", ""))
        return name if is_other and not reuse.is_switched_off(self.connections.invocation.variables) else None

    def _clone_source(
        self, build: Build, model: Mapping[str, Any], name: str
    ) -> tuple[reuse_decision.LastBuild, int, BuildFacts] | reuse_decision.Built:
        """Returns the build in another target to clone, its table's version, and the facts that it has here."""
        other = other_targets.other_target(self.connections, self.config, name)
        facts = partial(self.connections.handle.warehouse.facts, build)
        found = reuse.cannot_be_cloned(build) or other_targets.source_of(self.connections, other, model, facts)
        return found if isinstance(found, tuple) else reuse_decision.Built((f"not cloned from {name}: {found}",))

    def explained_reuse(
        self, model: Mapping[str, Any], *, may_clone: bool
    ) -> reuse_decision.Decision | reuse_decision.Cloned:
        """Decides whether a run would reuse a node, from the present states of its inputs; nothing is built.

        Args:
            may_clone: whether the inputs are the inputs of a run, so that another target's table can be looked for.
        """
        if not reuse.is_reusable(model, self.config.credentials.reuse):
            return reuse_decision.Built((f"it has no `reuse: {reuse.UNCHANGED}`",))
        name = self.clone_target(model) if may_clone else None
        log = log_of(self.connections.catalog, self._table(model))
        decision: reuse_decision.Decision = reuse_decision.Built(("its table does not exist",))
        if log is None and name is None:
            return decision
        build = self._build(model, checksum_of(model))
        if log is not None:
            decision = self._reuse(build, model, log, full_refresh=False)
        if name is None or isinstance(decision, reuse_decision.Reused):
            return decision
        try:
            found = self._clone_source(build, model, name)
        except errors.SiltError as error:  # an input that is missing here, and that a run would create first
            return reuse_decision.Built(
                (*decision.reasons, f"not cloned from {name}: {errors.sentence(error.problem)}")
            )
        if isinstance(found, tuple):
            return reuse_decision.Cloned(found[0])
        return reuse_decision.Built((*decision.reasons, *found.reasons))

    def _table(self, model: Mapping[str, Any]) -> RelationName:
        return RelationName(model["database"] or self.config.credentials.database, model["schema"], model["alias"])

    def _with_build(self, unit: Unit, model: Mapping[str, Any]) -> Unit:
        """Adds the description of a node's build to the unit if the node may be reused."""
        context = self.connections.invocation.context
        if context.empty or context.sample or not reuse.is_reusable(model, self.config.credentials.reuse):
            return unit
        return replace(unit, build=self._build(model, unit.checksum))

    def _build(self, model: Mapping[str, Any], checksum: str | None) -> Build:
        return reuse.build_of(model, checksum, self._project_facts(), time.time_ns() // 1_000_000)

    def _project_facts(self) -> reuse.ProjectFacts:
        """Returns the facts of the project whose manifest dbt has passed last; they are found once."""
        if self._facts is None:
            self._facts = self._facts_of(self._macro_resolver)
        return self._facts

    def _facts_of(self, macro_resolver: Any) -> reuse.ProjectFacts:
        given = self.config.credentials
        macros = reached_macros.Macros(macro_resolver, self._around())
        found, schema = macros.replacing(), (given.database, given.schema)
        conf = {**given.spark_conf, **self.connections.sessions.environment.accelerated}
        return reuse.ProjectFacts(conf, found.code, self._server(), schema, found, macros.of_hooks)

    def _around(self) -> reached_macros.Around:
        """Returns the values of dbt that macros may use."""
        config = self.config
        variables = {**config.vars.to_dict(), **self.connections.invocation.variables}
        return reached_macros.Around(variables, config.to_target_dict(), flags(), config.dispatch)

    def _server(self) -> str | None:
        """Returns the server of the profile with its version and settings, if Spark runs on a server."""
        remote = self.config.credentials.remote
        if remote is None:
            return None
        spark = self.connections.handle.warehouse.spark
        settings = {name: value for name, value in spark.conf.getAll.items() if name.startswith("spark.sql.")}
        return repr((remote, spark.version, sorted(settings.items())))

    def _reuse(
        self, build: Build, model: Mapping[str, Any], log: DeltaLog, full_refresh: bool
    ) -> reuse_decision.Decision:
        if full_refresh and model["resource_type"] != "snapshot":
            return reuse_decision.Built(("--full-refresh",))
        if reuse.is_switched_off(self.connections.invocation.variables):
            return reuse_decision.Built((f"{reuse.VARIABLE} is false",))
        if reuse.is_built_in_batches(model):
            return reuse_decision.Built((reuse.IN_BATCHES,))
        code = str(model.get("compiled_code") or "")
        return present.decide_now(self.connections.catalog, log, build, code, self.connections.sessions.listed_files)

    def set_macro_resolver(self, macro_resolver: Any) -> None:
        """Receives dbt's manifest."""
        super().set_macro_resolver(macro_resolver)  # type: ignore[misc]  # dbt's own adapter is the next base
        self.connections.invocation.on_manifest(lambda unique_id: _parents(macro_resolver, unique_id))
        self.connections.sessions.declared_files = cache(lambda: project_files.declared_by(macro_resolver, self.config))
        self._facts = None


def _parents(manifest: Any, unique_id: str) -> Sequence[str]:
    """Returns the ids that a node or a test is built from; empty for a source, a seed, and an unknown id."""
    for known in (manifest.nodes, manifest.unit_tests):
        if unique_id in known:
            return tuple(getattr(known[unique_id].depends_on, "nodes", ()))
    return ()
