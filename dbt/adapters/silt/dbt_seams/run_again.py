"""Lets a dbt command run some of its nodes again before it ends, as if it had been typed again for these nodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from dbt.adapters.factory import get_adapter
from dbt.graph.queue import GraphQueue
from dbt.task.runnable import GraphRunnableMode, GraphRunnableTask

_OF_HOOKS = "operation"
_execute_of_dbt = GraphRunnableTask.execute_with_hooks


@dataclass(frozen=True)
class RanNodes:
    """The nodes that a command has run.

    Attributes:
        selected: the unique ids of the nodes that it can run again.
        relations: the unique id of each of these nodes that has a relation, by its schema and name in lower case.
        results: the unique id and the status of each node, test and on-run hook.
        with_descendants: returns nodes, by their unique ids, with all nodes and tests that are built from them.
        of_project: the unique ids of all nodes and on-run hooks of the project, selected or not.
    """

    selected: frozenset[str]
    relations: Mapping[tuple[str, str], str]
    results: Collection[Mapping[str, Any]]
    with_descendants: Callable[[Collection[str]], frozenset[str]]
    of_project: frozenset[str]


Again: TypeAlias = Callable[[RanNodes], frozenset[str]]
"""Returns the nodes that a command is to run again, by their unique ids; empty if it is to end."""


def ask_adapters() -> None:
    """Lets the commands of this process ask their adapter, when their nodes and on-run hooks have run, which nodes are
    to run again: the attribute `again` of its connection manager, if it has one, and a command is to ask.
    """
    GraphRunnableTask.execute_with_hooks = _execute  # type: ignore[method-assign, assignment]


def _execute(task: Any, selected_uids: Any) -> Any:
    """Replaces dbt's method of a task: runs its on-run-start hooks, its nodes and its on-run-end hooks."""
    result = _execute_of_dbt(task, selected_uids)
    again: Again | None = getattr(get_adapter(task.config).connections, "again", None)
    if again is None:
        return result
    all_nodes = task._flattened_nodes
    try:
        while chosen := again(_ran(task, all_nodes)):
            _queue(task, all_nodes, chosen)
            result = _execute_of_dbt(task, chosen)
    finally:
        task._flattened_nodes = all_nodes
    return result


def _ran(task: Any, nodes: Collection[Any]) -> RanNodes:
    # A node that `dbt retry` repeats for some batches only cannot build the others.
    whole = [each for each in nodes if getattr(each, "previous_batch_results", None) is None]
    ids = frozenset(each.unique_id for each in whole)
    named = [each for each in whole if getattr(each, "relation_name", None)]
    relations = {(each.schema.lower(), each.alias.lower()): each.unique_id for each in named}
    results = [{"unique_id": each.node.unique_id, "status": str(each.status)} for each in task.node_results]

    def with_descendants(given: Collection[str]) -> frozenset[str]:
        known = {each for each in given if each in task.graph.nodes()}
        return frozenset({*given, *(ids & task.graph.select_children(known))})

    others = (getattr(task.manifest, kind, ()) for kind in ("functions", "unit_tests"))
    of_project = frozenset(task.manifest.nodes).union(*others)
    return RanNodes(ids, relations, results, with_descendants, of_project)


def _queue(task: Any, nodes: Collection[Any], chosen: Collection[str]) -> None:
    """Prepares a task to run some of its nodes: with their results and their state before they ran."""
    tests = {test for model in chosen for test in getattr(task, "model_to_unit_test_map", {}).get(model, ())}
    kept = (each for each in task.node_results if each.node.unique_id not in {*chosen, *tests})
    task.node_results = [each for each in kept if each.node.resource_type != _OF_HOOKS]
    task._flattened_nodes = [each for each in nodes if each.unique_id in chosen]
    for node in task._flattened_nodes:
        node.extra_ctes_injected, node.extra_ctes = False, []
    task.num_nodes = len([each for each in task._flattened_nodes if not each.is_ephemeral_model])
    task.run_count = 0
    ids: set[Any] = set(chosen)
    in_order = task.get_run_mode() is GraphRunnableMode.Topological
    task.job_queue = GraphQueue(task.graph.get_subset_graph(ids).graph, task.manifest, ids, in_order)
    get_adapter(task.config).cache.clear()
