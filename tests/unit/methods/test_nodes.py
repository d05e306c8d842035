"""The plan of a node, without Jinja: dbt's context is a dict, and each step writes a line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dbt.adapters.silt.methods.nodes import NodeMethods, NodePlan
from dbt.adapters.silt.records.units import Unit
from dbt.adapters.silt.runs.response import SiltResponse

UNIT = Unit("silt/the run/the node/main", 1, "the run")
AUDITED = Unit("silt/the run/the node/main", 2, "the run")
TABLE, EARLIER, REUSED = object(), SiltResponse("earlier"), SiltResponse("reused")


class Steps(NodeMethods):
    """An adapter whose steps write their names into a list, in order.

    Args:
        found: the results of steps, by their names; a step without a result returns None.
    """

    def __init__(self, **found: Any) -> None:
        self.lines: list[str] = []
        self.found = found
        node = SimpleNamespace(context=SimpleNamespace(has_own_materialization=False))
        self.connections = cast("Any", SimpleNamespace(node=node))
        self.begin_later = self.step("begin_later")
        self.check_seed_file = self.step("check_seed_file", [])
        self.config_warnings = self.step("config_warnings", [])
        self.external_target = self.step("external_target")
        self.get_incremental_strategy_macro = self.step("strategy")
        self.get_relation = self.step("get_relation")
        self.loss_warning = self.step("loss_warning")
        self.other_materialization = self.step("other_materialization")
        self.unused_macro_warnings = self.step("unused_macro_warnings", [])
        self._main_unit = self.step("main_unit", UNIT)  # type: ignore[method-assign]
        self._reused_result = self.step("reused")  # type: ignore[method-assign]
        self._earlier_result = self.step("earlier")  # type: ignore[method-assign]

    def step(self, name: str, result: Any = None) -> Callable[..., Any]:
        def run(*_: Any) -> Any:
            self.lines.append(name)
            return self.found.get(name, result)

        return run

    def with_audits(self, unit: Unit | None, *_: Any) -> Unit | None:
        self.lines.append("audits")
        found: Unit | None = self.found.get("audits", unit)
        return found

    def _find(self, relation: Any) -> None:
        raise AssertionError("the fake steps look for nothing")

    def begin(self, name: str, config: Mapping[str, Any] | None = None, **context: Any) -> NodePlan:
        """Begins a node with hooks; `model` has the config, too."""
        given = config or {}
        this = SimpleNamespace(database="main", schema="shop", identifier="orders", incorporate=lambda **_: None)
        model = {"resource_type": "model", "name": "orders", "config": given}
        values = {"model": model, "config": given, "this": this, "pre_hooks": ["a hook"], "render": str}
        graph = {"graph": {"nodes": {}, "sources": {}}, "selected_resources": []}
        calls = {
            "exceptions": {"warn": lambda text: self.lines.append(f"warn: {text}")},
            "should_full_refresh": lambda: False,
            "silt_run_pre_hooks": lambda hooks: self.lines.append(f"hooks: {', '.join(hooks)}"),
            "load_agate_table": lambda: "dbt's rows",
        }
        return self.begin_node(name, values | graph | calls | context)


def test_a_table_is_checked_before_its_hooks_run_and_looked_for_after_them() -> None:
    steps = Steps(get_relation=TABLE, audits=AUDITED)
    plan = steps.begin("table")
    assert plan == NodePlan(unit=AUDITED, existing=TABLE)  # type: ignore[arg-type]
    assert steps.lines == [
        "unused_macro_warnings",
        "other_materialization",
        "config_warnings",
        "begin_later",
        "main_unit",
        "reused",
        "hooks: a hook",
        "get_relation",
        "earlier",
        "audits",
        "loss_warning",
    ]
    assert steps.connections.node.context.has_own_materialization


def test_a_reused_node_runs_no_hooks() -> None:
    steps = Steps(reused=REUSED)
    plan = steps.begin("incremental")
    assert (plan.done, plan.runs_later_hooks) == (REUSED, False)
    assert not {"hooks: a hook", "earlier", "audits", "loss_warning"} & set(steps.lines)


def test_a_write_that_an_earlier_commit_contains_is_found_after_the_hooks() -> None:
    steps = Steps(earlier=EARLIER)
    plan = steps.begin("snapshot")
    assert (plan.done, plan.runs_later_hooks) == (EARLIER, True)
    assert steps.lines[-2:] == ["get_relation", "earlier"]


@pytest.mark.parametrize("name", ["view", "external"])
def test_a_view_is_no_unit_of_work(name: str) -> None:
    steps = Steps()
    assert steps.begin(name).unit is None
    assert "main_unit" not in steps.lines
    assert "hooks: a hook" in steps.lines


@pytest.mark.parametrize(
    ("name", "full_refresh"), [("table", True), ("incremental", True), ("seed", True), ("snapshot", False)]
)
def test_a_full_refresh_builds_everything_but_snapshots_again(name: str, full_refresh: bool) -> None:
    steps, given = Steps(), []
    steps._main_unit = lambda _, refreshed: given.append(refreshed)  # type: ignore[assignment, method-assign]
    steps.begin(name, should_full_refresh=lambda: True)
    assert given == [full_refresh]


def test_a_warning_that_dbt_raises_stops_the_node_before_its_hooks() -> None:
    steps = Steps(config_warnings=["no effect"])

    def fail(text: str) -> None:
        raise ValueError(text)

    with pytest.raises(ValueError, match="no effect"):
        steps.begin("table", exceptions={"warn": fail})
    assert steps.lines[-1] == "config_warnings"


def test_losses_are_warned_of_last() -> None:
    steps = Steps(get_relation=TABLE, loss_warning="rows are lost")
    steps.begin("view")
    assert steps.lines[-2:] == ["loss_warning", "warn: rows are lost"]


@pytest.mark.parametrize(
    ("name", "found", "prepared"),
    [
        ("incremental", {"strategy": "a macro"}, "a macro"),
        ("external", {"external_target": "a target"}, "a target"),
        ("seed", {}, "dbt's rows"),
        ("table", {}, None),
    ],
)
def test_a_plan_contains_the_part_that_only_its_materialization_needs(
    name: str, found: dict[str, Any], prepared: str | None
) -> None:
    steps = Steps(**found)
    assert steps.begin(name).prepared == prepared


@pytest.mark.parametrize("name", ["table", "test", "clone", "materialized_view"])
def test_a_materialization_of_the_project_replaces_this_one(name: str) -> None:
    steps = Steps(other_materialization=SimpleNamespace(package_name="shop", name="own"))
    plan = steps.begin(name, shop={"own": "the project's macro"})
    assert plan == NodePlan("the project's macro")  # type: ignore[arg-type]
    assert steps.lines == ["unused_macro_warnings", "other_materialization"]
    assert not steps.connections.node.context.has_own_materialization


def test_a_clone_without_a_source_looks_nothing_up() -> None:
    steps = Steps()
    assert steps.begin("clone", defer_relation=None) == NodePlan()
    assert "get_relation" not in steps.lines
