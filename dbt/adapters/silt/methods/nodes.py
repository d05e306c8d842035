"""Macro API of materializations: a single question begins a node, and the answer is the node's plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.meta import available
from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationKind
from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.methods.audits import AuditMethods
from dbt.adapters.silt.methods.builds import BuildMethods
from dbt.adapters.silt.records import units
from dbt.adapters.silt.runs.node_context import log_of

if TYPE_CHECKING:
    from dbt.adapters.silt.materializations import reuse
    from dbt.adapters.silt.materializations.overrides import Macro
    from dbt.adapters.silt.records.units import Unit
    from dbt.adapters.silt.relation import SiltRelation
    from dbt.adapters.silt.runs import done_again, hook_effects, skips
    from dbt.adapters.silt.runs.done_again import Decision
    from dbt.adapters.silt.runs.response import SiltResponse
else:
    reuse = lazy_module("dbt.adapters.silt.materializations.reuse")
    done_again = lazy_module("dbt.adapters.silt.runs.done_again")
    hook_effects = lazy_module("dbt.adapters.silt.runs.hook_effects")
    skips = lazy_module("dbt.adapters.silt.runs.skips")

logger = AdapterLogger("Silt")
_CLONE = "clone"


@dataclass(frozen=True)
class NodePlan:
    """The plan of a node: the work of its materialization.

    Attributes:
        other: the project's macro that replaces the materialization; the rest of the plan is then unknown.
        unit: the unit of work of the node's own write, if the write is a unit of work.
        existing: the table or view that has the node's name when the hooks before the write have run.
        done: the response of a write that is not run, because an earlier commit contains it or the node is reused.
        runs_later_hooks: whether the hooks after the write run.
        prepared: the macro of an incremental strategy, the rows of a seed, or the target of an external model.
    """

    other: Callable[[], Any] | None = None
    unit: Unit | None = None
    existing: SiltRelation | None = None
    done: SiltResponse | None = None
    runs_later_hooks: bool = True
    prepared: Any = None


@dataclass(frozen=True)
class _Kind:
    """A materialization.

    Attributes:
        relation: the type of the relation that it creates.
        is_unit: whether its write is a unit of work.
        is_refreshed: whether `--full-refresh` applies to it.
    """

    relation: str
    is_unit: bool = True
    is_refreshed: bool = True


_KINDS: Mapping[str, _Kind] = {
    "table": _Kind("table"),
    "incremental": _Kind("table"),
    "seed": _Kind("table"),
    "snapshot": _Kind("table", is_refreshed=False),
    "view": _Kind("view", is_unit=False, is_refreshed=False),
    "external": _Kind("view", is_unit=False, is_refreshed=False),
}


class NodeMethods(AuditMethods, BuildMethods):
    """The part of the adapter that plans a node for its materialization.

    Its methods take dbt's context of the node: the names that a macro sees -> their values.
    """

    begin_later: Callable[[Mapping[str, Any]], None]
    check_seed_file: Callable[..., list[str]]
    config_warnings: Callable[..., list[str]]
    external_target: Callable[[Mapping[str, Any], str], Any]
    get_incremental_strategy_macro: Callable[[Mapping[str, Any], str], Any]
    get_relation: Callable[[str, str, str], Any]
    loss_warning: Callable[..., str | None]
    other_materialization: Callable[[str], Macro | None]
    unused_macro_warnings: Callable[[str], list[str]]

    def pre_model_hook(self, config: Any) -> None:
        self.connections.node.begin(config)

    def post_model_hook(self, config: Any, context: Any) -> None:  # noqa: ARG002 - dbt's signature
        self.connections.node.leave()

    @available.parse_none
    def begin_node(self, name: str, context: Mapping[str, Any]) -> NodePlan:
        """Begins a node: checks its config, runs the hooks before its write, and returns its plan.

        The order of the steps is part of the contract. The checks fail, and `--warn-error` stops the node, before
        anything is read or written. The hooks run before the write is skipped, because they are units of work
        themselves; they run before a node is reused only if its config says so.

        Args:
            name: the name of the materialization.
            context: dbt's context of the node.

        Raises:
            CompilationError: if the config or a file of the node is invalid.
        """
        other = self._other(name, context)
        if other is not None or name not in (*_KINDS, _CLONE):
            return NodePlan(other)
        self.connections.node.context.has_own_materialization = True
        if name == _CLONE:
            return self._clone_plan(context)
        model, kind = context["model"], _KINDS[name]
        self._check(context)
        self.begin_later(model)
        prepared = self._prepared(name, context)
        refreshed = kind.is_refreshed and bool(context["should_full_refresh"]())
        unit = self._main_unit(model, refreshed) if kind.is_unit else None
        reused = self._after_hooks(unit, context, refreshed)
        existing = self._existing(context)
        done = self._earlier_result(unit, context["this"]) if reused is None else reused
        if done is None:
            unit = self.with_audits(unit, model, context["this"], context["selected_resources"])
            self._warn(context, [self.loss_warning(model, existing, context["this"].incorporate(type=kind.relation))])
        return NodePlan(None, unit, existing, done, reused is None, prepared)

    def _other(self, name: str, context: Mapping[str, Any]) -> Callable[[], Any] | None:
        self._warn(context, self.unused_macro_warnings(name))
        macro = self.other_materialization(name)
        return None if macro is None else context[macro.package_name][macro.name]

    def _check(self, context: Mapping[str, Any]) -> None:
        graph = context["graph"]
        selected = context["selected_resources"]
        self._warn(context, self.config_warnings(context["model"], graph["nodes"], selected, graph["sources"]))

    def _warn(self, context: Mapping[str, Any], warnings: Iterable[str | None]) -> None:
        for each in warnings:
            if each:
                context["exceptions"]["warn"](each)

    def _existing(self, context: Mapping[str, Any]) -> SiltRelation | None:
        this = context["this"]
        found: SiltRelation | None = self.get_relation(this.database, this.schema, this.identifier)
        return found

    def _prepared(self, name: str, context: Mapping[str, Any]) -> Any:
        """Returns the part of the plan that only a single kind of node has."""
        config = context["config"]
        if name == "incremental":
            return self.get_incremental_strategy_macro(context, config.get("incremental_strategy") or "default")
        if name == "external":
            return self.external_target(context["model"], context["render"](config.get("location") or ""))
        return self._seed_rows(context) if name == "seed" else None

    def _seed_rows(self, context: Mapping[str, Any]) -> Any:
        """Returns the rows of a seed, whose file is checked before dbt reads it."""
        config = context["config"]
        checked = self.check_seed_file(context["model"], config.get("column_types"), config.get("delimiter"))
        self._warn(context, checked)
        return context["load_agate_table"]()

    def _after_hooks(self, unit: Unit | None, context: Mapping[str, Any], full_refresh: bool) -> SiltResponse | None:
        """Runs the hooks before the write of a node; returns the response of a node that is reused, without hooks."""
        reused = self._reused_result(unit, context["model"], context["this"], full_refresh)
        if reused is None:
            self._run_hooks(context)
        return reused

    def _run_hooks(self, context: Mapping[str, Any]) -> None:
        context["silt_run_pre_hooks"](context["pre_hooks"])

    def _clone_plan(self, context: Mapping[str, Any]) -> NodePlan:
        """Returns the plan of a clone; without a relation to clone, nothing is looked up."""
        if not context.get("defer_relation"):
            return NodePlan()
        existing = self._existing(context)
        with self.connections.exception_handler("name the unit of work"):
            refreshed = bool(context["flags"].FULL_REFRESH)
            unit = units.clone_unit(self.connections.invocation.context, context["model"], refreshed)
        return NodePlan(None, unit, existing, self._earlier_result(unit, context["this"]))

    def _main_unit(self, model: Mapping[str, Any], full_refresh: bool) -> Unit | None:
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
        if unit.build is not None:
            context.hooks = hook_effects.HookEffects(self._table(model))
            if reuse.has_hooks_after(model) and not unit.build.unknown:
                unit = hook_effects.with_end(unit)
        context.own = unit
        return unit

    def _decision(self, unit: Unit, model: Mapping[str, Any]) -> Decision | None:
        """Decides whether to skip a node's own write; returns None if its table does not exist, or the run is new."""
        if self.connections.invocation.is_new_run:
            return None
        log = log_of(self.connections.catalog, self._table(model))
        if log is None:
            return None
        upstream = self.connections.invocation.upstream_of_failures
        return done_again.Rerun(self.connections.catalog, upstream, self.connections.sessions.listed_files).decide(
            unit, model, log
        )

    def _earlier_result(self, unit: Unit | None, relation: SiltRelation) -> SiltResponse | None:
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
            self.connections.sessions.runner.note_skip(response, unit)
        return response
