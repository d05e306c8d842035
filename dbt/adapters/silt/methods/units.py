"""Macro API for units of work: names a unit, checks whether it is committed, and runs it."""

from __future__ import annotations

import hashlib
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.meta import AdapterMeta, available
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtDatabaseError

from dbt.adapters.silt.dbt_seams.command_state import flags
from dbt.adapters.silt.engine.catalog.names import RelationEntry, RelationKind, RelationName
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.materializations.incremental.microbatch import REMEDY
from dbt.adapters.silt.records.units import Unit, clone_unit, main_unit, model_hook_scope
from dbt.adapters.silt.runs.node_context import is_rebuilt, log_of, table_of

if TYPE_CHECKING:
    from dbt.adapters.contracts.connection import AdapterResponse

    from dbt.adapters.silt.connections import SiltConnectionManager
    from dbt.adapters.silt.engine.kernel.log.builds import Build, BuildFacts
    from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
    from dbt.adapters.silt.engine.reuse import decision as reuse_decision
    from dbt.adapters.silt.engine.reuse import present
    from dbt.adapters.silt.engine.sql import ast, tokens
    from dbt.adapters.silt.engine.statements.execute.affected_tables import Written
    from dbt.adapters.silt.materializations import reached_macros, reuse, seed_checks
    from dbt.adapters.silt.materializations.external import project_files
    from dbt.adapters.silt.methods import other_targets
    from dbt.adapters.silt.relation import SiltRelation
    from dbt.adapters.silt.runs import cut_relations, done_again, hook_effects, skips
    from dbt.adapters.silt.runs import response as responses
    from dbt.adapters.silt.runs.done_again import Decision
    from dbt.adapters.silt.runs.response import SiltResponse
else:
    present = lazy_module("dbt.adapters.silt.engine.reuse.present")
    reuse_decision = lazy_module("dbt.adapters.silt.engine.reuse.decision")
    reached_macros = lazy_module("dbt.adapters.silt.materializations.reached_macros")
    reuse = lazy_module("dbt.adapters.silt.materializations.reuse")
    ast = lazy_module("dbt.adapters.silt.engine.sql.ast")
    tokens = lazy_module("dbt.adapters.silt.engine.sql.tokens")
    other_targets = lazy_module("dbt.adapters.silt.methods.other_targets")
    project_files = lazy_module("dbt.adapters.silt.materializations.external.project_files")
    cut_relations = lazy_module("dbt.adapters.silt.runs.cut_relations")
    done_again = lazy_module("dbt.adapters.silt.runs.done_again")
    hook_effects = lazy_module("dbt.adapters.silt.runs.hook_effects")
    seed_checks = lazy_module("dbt.adapters.silt.materializations.seed_checks")
    skips = lazy_module("dbt.adapters.silt.runs.skips")
    responses = lazy_module("dbt.adapters.silt.runs.response")

logger = AdapterLogger("Silt")


class UnitMethods(metaclass=AdapterMeta):
    """The part of the adapter that writes each unit of work once."""

    config: Any
    connections: SiltConnectionManager

    @abstractmethod
    def _find(self, relation: SiltRelation) -> RelationEntry | None:
        """Returns the table or view of that name."""

    @available.parse_none
    def main_unit(self, model: Mapping[str, Any], full_refresh: bool) -> Unit | None:
        """Returns the unit of work of a node's own write, with the version under which it must still be done.

        Returns None in a command whose writes are not units of work.
        """
        unit = self._named_unit(model, full_refresh)
        if unit is None:
            return None
        unit = self._with_build(unit, model)
        with self.connections.exception_handler("look for an earlier commit"):
            decision = self._decision(unit, model)
        self.connections.node.context.decision = decision
        if decision is not None and decision.reasons:
            logger.info(f"Done again: {model['name']}: {', '.join(decision.reasons)}")
        return self._with_hooks(unit if decision is None else decision.unit, model)

    def _with_hooks(self, unit: Unit, model: Mapping[str, Any]) -> Unit:
        """Returns the unit, whose build waits for later hooks; keeps the changes of a reusable node's hooks."""
        context = self.connections.node.context
        if unit.build is not None and not reuse.runs_hooks(model):
            context.hooks = hook_effects.HookEffects(self._table(model))
            if reuse.has_hooks_after(model) and not unit.build.unknown:
                unit = hook_effects.with_end(unit)
        context.own = unit
        return unit

    @available.parse_none
    def clone_unit(self, model: Mapping[str, Any], full_refresh: bool) -> Unit:
        """Returns the unit of work of a node's clone."""
        with self.connections.exception_handler("name the unit of work"):
            return clone_unit(self.connections.invocation.context, model, full_refresh)

    @available.parse_none
    def earlier_result(self, unit: Unit | None, relation: SiltRelation) -> SiltResponse | None:
        """Returns the response of a unit of work that is already in the table, or None if it must still be done."""
        if unit is None:
            return None
        with self.connections.exception_handler(f"look for an earlier commit in {relation}"):
            entry = self._find(relation)
            if entry is None or entry.kind is not RelationKind.TABLE:
                return None
            decision = self.connections.node.context.decision
            hidden = () if decision is None else decision.hidden
            response = skips.skipped(self.connections.catalog.table(entry.name), unit, hidden)
        if response is not None:
            self.connections.handle.warehouse.forget_reads(entry.name)
            self.connections.runner.note_skip(response, unit)
        return response

    @available.parse_none
    def reused_result(
        self, unit: Unit | None, model: Mapping[str, Any], relation: SiltRelation, full_refresh: bool
    ) -> SiltResponse | None:
        """Returns the response of a node that is reused; empty if the node is built, or has no `reuse: unchanged`."""
        if unit is None or unit.build is None:
            return None
        with self.connections.exception_handler(f"look for the last build of {relation}"):
            entry = self._find(relation)
            is_table = entry is not None and entry.kind is RelationKind.TABLE
            log = self.connections.catalog.table(entry.name) if entry is not None and is_table else None
            if log is not None and log.snapshot().holds(unit.txn):
                return None
            decision = None if log is None else self._reuse(unit.build, model, log, full_refresh)
        note = "; its hooks did not run" if reuse.has_hooks(model) and not reuse.runs_hooks(model) else ""
        if isinstance(decision, reuse_decision.Reused):
            response = responses.SiltResponse.of_reuse(decision, note)
            self.connections.runner.note_reuse(response)
            return response
        self.connections.node.context.built_because = None if decision is None else str(decision)
        # A seed replaces no view, unless its hooks drop the view first.
        is_refused = entry is not None and not is_table and model["resource_type"] == "seed"
        return None if is_refused or self._is_built_anyway(full_refresh) else self._cloned(unit, model, relation, note)

    def _is_built_anyway(self, full_refresh: bool) -> bool:
        return full_refresh or reuse.is_switched_off(self.connections.invocation.variables)

    def _cloned(self, unit: Unit, model: Mapping[str, Any], relation: SiltRelation, note: str) -> SiltResponse | None:
        """Clones the table of another target if it holds the rows that the build would write; empty if not."""
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
        response = self._write(text, replace(unit, build=replace(build, known=known)))
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

    @available.parse_none
    def runs_hooks_on_reuse(self, model: Mapping[str, Any]) -> bool:
        """Returns whether the hooks of a node run although the node is reused."""
        return reuse.runs_hooks(model)

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
        build = self._build(model, _checksum(model))
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
        return reuse.build_of(model, checksum, self.connections.project_facts(), time.time_ns() // 1_000_000)

    def _project_facts(self, macro_resolver: Any) -> reuse.ProjectFacts:
        given = self.config.credentials
        macros = reached_macros.Macros(macro_resolver, self._around())
        found, schema = macros.replacing(), (given.database, given.schema)
        return reuse.ProjectFacts(given.spark_conf, found.code, self._server(), schema, found, macros.of_hooks)

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
        return present.decide_now(self.connections.catalog, log, build, code, self.connections.listed_files)

    @available.parse(lambda *_, **__: None)
    def write_unit(self, sql: str, unit: Unit | None) -> AdapterResponse:
        """Runs a node's own write as its unit of work; of several statements, the last is the unit, the rest parts."""
        if unit is None:
            return self.connections.execute(sql)[0]
        *earlier, last = tokens.split_statements(sql) or [sql]
        for number, statement in enumerate(earlier, 1):
            self._write(statement, unit.part(number))
        return self._write(last, unit)

    def _named_unit(self, model: Mapping[str, Any], full_refresh: bool) -> Unit | None:
        if not self.connections.invocation.writes:
            return None
        with self.connections.exception_handler("name the unit of work"):
            return main_unit(self.connections.invocation.context, model, full_refresh, _checksum(model))

    def _decision(self, unit: Unit, model: Mapping[str, Any]) -> Decision | None:
        """Decides whether to skip a node's own write; returns None if its table does not exist, or the run is new."""
        if self.connections.invocation.is_new_run:
            return None
        log = log_of(self.connections.catalog, self._table(model))
        if log is None:
            return None
        upstream = self.connections.invocation.upstream_of_failures
        return done_again.Rerun(self.connections.catalog, upstream, self.connections.listed_files).decide(
            unit, model, log
        )

    def _write(self, sql: str, unit: Unit) -> AdapterResponse:
        try:
            return self.connections.execute(sql, unit=unit)[0]
        except DbtDatabaseError as error:
            if isinstance(error.__cause__, errors.RelationExistsError):
                raise DbtDatabaseError(_created_meanwhile(error.__cause__)) from error.__cause__
            if isinstance(error.__cause__, errors.ReplaceWhereMismatchError) and unit.is_batch:
                raise DbtDatabaseError(f"{errors.sentence(error.msg)} {errors.sentence(REMEDY)}") from error.__cause__
            raise

    @available.parse(lambda *_, **__: None)
    def write_view(self, sql: str, existing: SiltRelation | None) -> AdapterResponse:
        """Creates a view; replaces a table of that name in a single step if the run has seen the table."""
        return self.connections.execute(sql, replace_tables=existing is not None and existing.is_table)[0]

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
            statements = [warehouse.parsed(each) for each in tokens.split_statements(cut_relations.current_text(sql))]
            written = [warehouse.written(each) for each in statements]
            index = _index_of_write(written, table_of(work.node, self.config.credentials.database))
        if index is not None and work.scope is None:
            full_refresh = is_rebuilt(work.node, self.connections.invocation.full_refresh)
            unit = self._named_unit(work.node.to_dict(omit_none=True), full_refresh)
            work.named = [unit if number == index else None for number in range(len(statements))]

    @available.parse_none
    def leave_main(self) -> None:
        self.connections.node.context.named = []

    @available.parse_none
    def begin_own_materialization(self) -> None:
        """Records that a materialization of this adapter runs the node, and names its write itself."""
        self.connections.node.context.has_own_materialization = True

    def set_macro_resolver(self, macro_resolver: Any) -> None:
        """Receives dbt's manifest."""
        super().set_macro_resolver(macro_resolver)  # type: ignore[misc]  # dbt's own adapter is the next base
        self.connections.invocation.on_manifest(lambda unique_id: _parents(macro_resolver, unique_id))
        self.connections.declared_files = cache(lambda: project_files.declared_by(macro_resolver, self.config))
        self.connections.project_facts = cache(lambda: self._project_facts(macro_resolver))

    def pre_model_hook(self, config: Any) -> None:
        self.connections.node.begin(config)

    def post_model_hook(self, config: Any, context: Any) -> None:  # noqa: ARG002 - dbt's signature
        self.connections.node.leave()


def _parents(manifest: Any, unique_id: str) -> Sequence[str]:
    """Returns the ids that a node or a test is built from; empty for a source, a seed, and an unknown id."""
    for known in (manifest.nodes, manifest.unit_tests):
        if unique_id in known:
            return tuple(getattr(known[unique_id].depends_on, "nodes", ()))
    return ()


def _index_of_write(written: Sequence[Written | None], table: RelationName) -> int | None:
    """Returns the index of the statement that is a node's own write, if any of them writes rows."""
    rows = [(number, each.table) for number, each in enumerate(written) if each and each.effect is ast.Effect.ROWS]
    own = [number for number, name in rows if name == table]
    return own[-1] if own else rows[-1][0] if rows else None


def _checksum(model: Mapping[str, Any]) -> str | None:
    """Returns the checksum of the node's raw code, or of a seed's file, as dbt has no checksum of a large file."""
    if model["resource_type"] == "seed":
        return hashlib.sha256(seed_checks.seed_file(model).read_bytes()).hexdigest()
    return model["checksum"]["checksum"] if model.get("checksum") else None


def _created_meanwhile(error: errors.RelationExistsError) -> str:
    """Returns the error for a table that another run has created since this run looked for it."""
    happened = "another run has created it since this run looked for it"
    return f"[{error.code}] {error.table}: {happened}. Nothing was written: run it again."
