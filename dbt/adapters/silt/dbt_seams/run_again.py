"""Lets a dbt command run some of its nodes again before it ends, as if it had been typed again for them, or fail."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping
from dataclasses import dataclass
from typing import Any

import click
from click.globals import pop_context
from dbt.adapters.factory import get_adapter
from dbt.cli.exceptions import ExceptionExit
from dbt.graph.queue import GraphQueue
from dbt.task.runnable import GraphRunnableMode, GraphRunnableTask
from dbt_common.exceptions import DbtRuntimeError

from dbt import selected_resources
from dbt.adapters.silt.dbt_seams.definitions import Definitions

_OF_HOOKS = "operation"
_execute_of_dbt = GraphRunnableTask.execute_with_hooks


@dataclass(frozen=True)
class RanNodes:
    """The nodes of a command, before or after it has run them.

    Attributes:
        selected: the unique ids of the nodes that it can run again.
        relations: the unique id of each node and source of the project that has a relation, by its schema and name in
            lower case.
        results: the unique id and the status of each node, test and on-run hook that has run.
        with_descendants: returns nodes and sources, by their unique ids, with all nodes and tests that are built from
            them.
        of_project: the unique ids of all nodes, tests and on-run hooks of the project, selected or not.
        others: the nodes and tests that the command can run, though it has not selected them.
        definitions: returns a hash of the definition of each node and on-run hook of the project, by its unique id.
        code: returns what names the files that a node reads; empty if it no longer exists.
        files: the files that views of the project or of this process read.
    """

    selected: frozenset[str]
    relations: Mapping[tuple[str, str], str]
    results: Collection[Mapping[str, Any]]
    with_descendants: Callable[[Collection[str]], frozenset[str]]
    of_project: frozenset[str]
    others: frozenset[str] = frozenset()
    definitions: Callable[[], Mapping[str, str]] = dict
    code: Callable[[str], str] = str
    files: Container[str] = ()


def aborting_error(cause: Exception) -> Exception:
    """Returns the error that ends the command line of dbt with the exit code of an error.

    Raise it after the nodes have run. Click would not remove its context, and a later command would find it.
    """
    if click.get_current_context(silent=True) is not None:
        pop_context()
    return ExceptionExit(DbtRuntimeError(str(cause)))


def ask_adapters() -> None:
    """Lets the commands of this process ask their adapter, before their nodes and on-run hooks run, which nodes are to
    run whole, selected or not, and afterwards, which nodes are to run again: the methods `first` and `again` of the
    publication in its connection manager, if it is on.
    """
    GraphRunnableTask.execute_with_hooks = _execute  # type: ignore[method-assign, assignment]


def _execute(task: Any, selected_uids: Any) -> Any:
    """Replaces dbt's method of a task: runs its on-run-start hooks, its nodes and its on-run-end hooks."""
    publication = getattr(get_adapter(task.config).connections, "publication", None)
    if publication is None or not publication.is_on:
        return _execute_of_dbt(task, selected_uids)
    all_nodes = task._flattened_nodes
    _select(task, all_nodes)  # `dbt retry` selects nothing
    if added := publication.first(_ran(task, all_nodes)):
        all_nodes = _add(task, all_nodes, added)
        selected_uids = frozenset(each.unique_id for each in all_nodes)
    try:
        result = _execute_of_dbt(task, selected_uids)
        while chosen := publication.again(_ran(task, all_nodes)):
            _queue(task, all_nodes, chosen)
            result = _execute_of_dbt(task, chosen)
    finally:
        task._flattened_nodes = all_nodes
    return result


def _ran(task: Any, nodes: Collection[Any]) -> RanNodes:
    # A node that `dbt retry` repeats for some batches only cannot build the others.
    whole = [each for each in nodes if getattr(each, "previous_batch_results", None) is None]
    ids = frozenset(each.unique_id for each in whole)
    results = [{"unique_id": each.node.unique_id, "status": str(each.status)} for each in task.node_results]

    def with_descendants(given: Collection[str]) -> frozenset[str]:
        known = {each for each in given if each in task.graph.nodes()}
        return frozenset({*given, *task.graph.select_children(known)})

    known = _known(task)
    types = getattr(task, "RUNNER_MAP", None) or {each.resource_type for each in nodes}
    others = frozenset(each.unique_id for each in known.values() if each.resource_type in types)
    variables = {**task.config.vars.to_dict(), **(task.config.cli_vars or {})}
    definitions = Definitions(task.manifest, variables)
    return RanNodes(
        ids,
        {(each.schema.lower(), _name(each).lower()): each.unique_id for each in _named(task)},
        results,
        with_descendants,
        frozenset(known),
        others - ids,
        lambda: definitions.all,
        definitions.code,
    )


def _known(task: Any) -> dict[str, Any]:
    """Returns the nodes, tests and on-run hooks of the project, by their unique ids."""
    return {**task.manifest.nodes, **task.manifest.unit_tests, **getattr(task.manifest, "functions", {})}


def _named(task: Any) -> list[Any]:
    """Returns the nodes and sources that have a relation; a node goes before a source of the same name."""
    found = (*task.manifest.sources.values(), *task.manifest.nodes.values(), *task.manifest.functions.values())
    return [each for each in found if each.resource_type == "function" or getattr(each, "relation_name", None)]


def _name(node: Any) -> str:
    return str(node.identifier if node.resource_type == "source" else node.alias)


def _add(task: Any, nodes: Collection[Any], added: Collection[str]) -> list[Any]:
    """Prepares a task to run some nodes whole, and the given nodes; returns all its nodes."""
    of_units = {each for each in added if each in task.manifest.unit_tests}
    if of_units:
        task.selected_unit_tests = {*task.selected_unit_tests, *of_units}
        task.build_model_to_unit_test_map(task.selected_unit_tests)
    known = _known(task)
    found = [*nodes, *(known[each] for each in sorted(added) if each not in of_units)]
    batches = getattr(task, "batch_map", None) or {}
    for each in found:
        if each.unique_id in added:
            batches.pop(each.unique_id, None)
    unique = list({each.unique_id: each for each in found}.values())
    _queue(task, unique, {each.unique_id for each in unique})
    _select(task, unique)
    return unique


def _select(task: Any, nodes: Collection[Any]) -> None:
    """Notes which nodes and unit tests a task runs."""
    of_units: Collection[str] = getattr(task, "selected_unit_tests", ())
    selected_resources.set_selected_resources({*(each.unique_id for each in nodes), *of_units})


def _queue(task: Any, nodes: Collection[Any], chosen: Collection[str]) -> None:
    """Prepares a task to run some of its nodes: with their results and their state before they ran."""
    tests = {test for model in chosen for test in getattr(task, "model_to_unit_test_map", {}).get(model, ())}
    kept = (each for each in task.node_results if each.node.unique_id not in {*chosen, *tests})
    task.node_results = [each for each in kept if each.node.resource_type != _OF_HOOKS]
    task._flattened_nodes = [each for each in nodes if each.unique_id in chosen]
    for node in (each for each in task._flattened_nodes if each.resource_type != "seed"):
        node.extra_ctes_injected, node.extra_ctes = False, []
    task.num_nodes = len([each for each in task._flattened_nodes if not each.is_ephemeral_model])
    task.run_count = 0
    ids: set[Any] = set(chosen)
    in_order = task.get_run_mode() is GraphRunnableMode.Topological
    task.job_queue = GraphQueue(task.graph.get_subset_graph(ids).graph, task.manifest, ids, in_order)
    get_adapter(task.config).cache.clear()
