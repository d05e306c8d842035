"""The parts of dbt that it does not promise to keep are as `dbt_seams` needs them: a new dbt fails here first.

They were read from dbt-core 1.11.16, dbt-adapters 1.24.5 and dbt-common 1.39.0.
"""

from __future__ import annotations

import inspect
import io
from argparse import Namespace
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest
from dbt.adapters.factory import FACTORY, AdapterContainer
from dbt.artifacts.schemas.run.v5.run import RunResultOutput, RunResultsMetadata
from dbt.cli import main, requires
from dbt.cli.exceptions import ExceptionExit, ResultExit
from dbt.compilation import Compiler
from dbt.config.profile import Profile
from dbt.contracts.graph.manifest import Manifest
from dbt.contracts.graph.nodes import GenericTestNode
from dbt.events import types
from dbt.flags import set_from_args
from dbt.graph.queue import GraphQueue
from dbt.task.build import BuildTask
from dbt.task.clone import CloneTask
from dbt.task.runnable import GraphRunnableTask
from dbt_common.events.base_types import EventLevel
from dbt_common.events.event_manager_client import get_event_manager
from dbt_common.events.functions import get_stdout_config
from dbt_common.events.logger import LineFormat

from dbt import selected_resources
from dbt.adapters.silt.credentials import SiltCredentials
from dbt.adapters.silt.dbt_seams import command_state, interruption, project_values, run_again, target_type
from dbt.adapters.silt.records.command_result import RESULTS_FILE


def test_the_dictionary_of_a_target_has_the_type_of_the_adapter() -> None:
    """`target_type` replaces the type in it."""
    set_from_args(Namespace(LOG_CACHE_EVENTS=False), {})
    credentials = SiltCredentials(database="silt", schema="main")
    target = Profile("shop", "dev", 1, credentials).to_target_dict()
    assert (target["type"], target["name"], target["schema"]) == ("silt", "dev", "main")
    assert "sql/protocol" in target["http_path"]


def test_dispatch_asks_a_wrapper_for_the_prefixes_of_macros() -> None:
    """A package's macros for Databricks add a prefix, before the last."""
    assert list(inspect.signature(target_type._dispatch_of_dbt).parameters) == [
        *("self", "macro_name", "macro_namespace", "packages"),
    ]
    assert list(inspect.signature(target_type._prefixes_of_dbt).parameters) == ["self"]
    assert "self._get_adapter_macro_prefixes()" in inspect.getsource(target_type._dispatch_of_dbt)


def test_dispatch_asks_a_container_of_adapters_for_the_names_of_their_types() -> None:
    """`target_type` adds a name to them, and finds the adapter by its name."""
    # An earlier command in this process may have replaced the method of the class.
    assert list(inspect.signature(target_type._names_of_dbt).parameters) == ["self", "name"]
    assert isinstance(FACTORY, AdapterContainer)
    assert isinstance(FACTORY.adapters, dict)


@pytest.mark.parametrize(
    "name",
    [
        *("MainEncounteredError", "MainStackTrace", "CommandCompleted", "GenericExceptionOnRun"),
        "NoNodesForSelectionCriteria",
    ],
)
def test_dbt_has_the_events_that_the_adapter_waits_for_or_hides(name: str) -> None:
    assert getattr(types, name).__name__ == name


def test_the_logger_of_the_standard_output_has_the_name_that_is_looked_for() -> None:
    config = get_stdout_config(LineFormat.PlainText, False, EventLevel.INFO, False)
    assert config.name == interruption._SCREEN


def test_a_logger_has_a_filter_that_can_be_replaced() -> None:
    manager = get_event_manager()
    before = list(manager.loggers)
    config = get_stdout_config(LineFormat.PlainText, False, EventLevel.INFO, False)
    config.output_stream = io.StringIO()
    try:
        manager.add_logger(config)
        assert callable(manager.loggers[-1].filter)
    finally:
        manager.loggers[:] = before


def test_a_command_that_fails_has_the_exit_code_of_failed_nodes_or_carries_the_error_that_aborted_it() -> None:
    error = ValueError("lost")
    failed, aborted = ResultExit(), ExceptionExit(error)
    assert isinstance(failed, click.ClickException) and isinstance(aborted, click.ClickException)
    assert (failed.exit_code, aborted.exit_code, aborted.exception) == (1, 2, error)


@pytest.mark.parametrize("name", ["flags", "runtime_config", "dbt_runner_command_args"])
def test_the_context_of_a_command_has_the_entries_that_are_read(name: str) -> None:
    assert any(f'"{name}"' in inspect.getsource(module) for module in (main, requires))


def test_the_results_of_a_command_have_the_fields_that_are_read() -> None:
    fields = set(RunResultOutput.__dataclass_fields__)
    assert {"unique_id", "status", "message", "adapter_response"} <= fields
    assert "invocation_id" in RunResultsMetadata.__dataclass_fields__
    assert RESULTS_FILE == "run_results.json"


def test_a_task_runs_its_hooks_and_nodes_in_a_method_that_can_be_called_again() -> None:
    """Nodes run again after a conflict. The method reads the nodes, their queue and the results from the task."""
    # An earlier command in this process may have replaced the method of the class.
    method = run_again._execute_of_dbt
    assert list(inspect.signature(method).parameters) == ["self", "selected_uids"]
    assert {"_flattened_nodes", "node_results", "num_nodes", "started_at"} <= names_in(method)
    assert {"job_queue", "num_nodes"} <= names_in(GraphRunnableTask._runtime_initialize)
    assert "execute_with_hooks" not in vars(BuildTask) and "execute_with_hooks" not in vars(CloneTask)


def test_the_manifest_has_the_on_run_hooks_among_its_nodes() -> None:
    """A statement that an on-run hook has left is dropped when the project no longer has the hook."""
    assert "HookNode" in str(Manifest.__dataclass_fields__["nodes"].type)


def test_a_queue_of_nodes_is_made_from_a_part_of_the_graph() -> None:
    parameters = list(inspect.signature(GraphQueue.__init__).parameters)
    assert parameters == ["self", "graph", "manifest", "selected", "preserve_edges"]


def test_the_flags_and_the_selection_of_a_command_are_global() -> None:
    before = selected_resources.SELECTED_RESOURCES
    set_from_args(Namespace(QUIET=True, LOG_CACHE_EVENTS=False), {})
    try:
        selected_resources.set_selected_resources({"model.shop.orders"})
        assert (command_state.flags().QUIET, command_state.selected_nodes()) == (True, {"model.shop.orders"})  # type: ignore[comparison-overlap]
    finally:
        selected_resources.set_selected_resources(before)  # type: ignore[arg-type]
        set_from_args(Namespace(LOG_CACHE_EVENTS=False), {})


def test_the_fields_of_a_target_are_rendered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_SCHEMA", "july")
    target = "shop: {outputs: {dev: {type: silt, schema: \"{{ env_var('SHOP_SCHEMA') }}\", threads: 4}}}"
    (tmp_path / "profiles.yml").write_text(target)
    found = project_values.fields_of_target(tmp_path, "shop", "dev")
    assert found == {"type": "silt", "schema": "july", "threads": 4}


def test_the_configs_of_nodes_are_fields_of_their_classes() -> None:
    names = [{field.name for field in fields(each)} for each in project_values.CONFIGS]
    assert all({"enabled", "meta", "tags", "schema", "database"} <= each for each in names)
    assert all("unique_key" in each for each in names)


def test_the_context_of_a_projects_yaml_takes_a_configuration_and_the_name_of_the_package() -> None:
    parameters = list(inspect.signature(project_values.generate_schema_yml_context).parameters)  # type: ignore[attr-defined]
    assert parameters[:2] == ["config", "project_name"]
    assert list(inspect.signature(project_values.get_rendered).parameters)[:2] == ["string", "ctx"]  # type: ignore[attr-defined]


def test_a_node_is_compiled_without_a_file_from_the_manifest() -> None:
    """`definitions` compiles a copy of a test, before dbt compiles the test."""
    assert list(inspect.signature(Compiler.__init__).parameters) == ["self", "config"]
    parameters = inspect.signature(Compiler.compile_node).parameters
    assert list(parameters)[:3] == ["self", "node", "manifest"]
    assert "write" in parameters
    assert "attached_node" in {each.name for each in fields(GenericTestNode)}


def names_in(function: Any) -> set[str]:
    """The names of the attributes that a function uses."""
    return set(function.__code__.co_names)
