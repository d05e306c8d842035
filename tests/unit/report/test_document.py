"""The data of the page: which parts of runs, models and artifacts it contains and which it omits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.silt.engine.kernel.table.paths import commit_path
from dbt.adapters.silt.records.commit_facts import CommitFacts
from dbt.adapters.silt.report.artifacts import MANIFEST, RESULTS, SOURCES, milliseconds, node_results
from dbt.adapters.silt.report.document import Source, document
from tests.unit.cli.house import House, rows
from tests.unit.report import night, shop

Project = Mapping[str, Any]


def texts(project: Project, numbers: list[int | None]) -> list[str | None]:
    return [None if number is None else project["texts"][number] for number in numbers]


def states_of(project: Project, command: Project) -> dict[str | None, str | None]:
    return dict(texts(project, node[:2]) for node in command["nodes"])  # type: ignore[misc]


def test_runs_from_logs_registry_and_results_are_listed_newest_first(project: Project) -> None:
    assert [run["id"] for run in project["runs"]] == ["tuesday", "monday", "broken"]
    assert project["runs"][0]["commands"][0]["line"].startswith("dbt build --select")
    commands = {run["id"]: run["commands"][0]["state"] for run in project["runs"]}
    assert commands == {"tuesday": "failed", "monday": "succeeded", "broken": "broken off"}


def test_each_run_has_its_result_its_failures_and_its_nodes(project: Project) -> None:
    runs = {run["id"]: run for run in project["runs"]}
    tuesday, monday = runs["tuesday"], runs["monday"]
    assert (tuesday["state"], texts(project, tuesday["failed"])) == (
        "failed",
        ["model.shop.late", "test.shop.unique_id"],
    )
    assert tuesday["counts"] == {"pass": 1, "warn": 1, "error": 2, "skip": 1, "reused": 1}
    assert (monday["upkeep"], "upkeep" in tuesday) == (shop.UPKEEP, False)
    assert states_of(project, monday["commands"][0]) == {"model.shop.orders": "built"}
    assert (runs["broken"]["state"], "nodes" in runs["broken"]["commands"][0]) == ("broken off", False)


def test_only_the_newest_runs_but_all_tables_are_shown(house: House, target: Path) -> None:
    shop.build(house, target)
    made = json.loads(document(Source(house.catalog, target, runs=1), 1).json)
    assert [run["id"] for run in made["runs"]] == ["tuesday"]
    assert len(made["tables"]) == 2


def test_a_skipped_unit_names_the_commit_that_did_its_work(project: Project) -> None:
    [[node, table, _, version]] = project["runs"][0]["skips"]
    assert (*texts(project, [node, table]), version) == ("model.shop.customers", "silt.main.customers", 0)


def test_results_show_whether_nodes_were_built_done_earlier_skipped_or_failed(project: Project) -> None:
    assert states_of(project, project["runs"][0]["commands"][0]) == {
        "model.shop.orders": "built",
        "model.shop.customers": "done earlier",
        "model.shop.late": "failed",
        "model.shop.held": "skipped",
        "test.shop.unique_id": "failed",
        "test.shop.not_null_name": "warned",
    }


@pytest.mark.parametrize(
    ("response", "message", "state"),
    [
        ({"skipped": True, "reused": True, "table": "silt.main.orders"}, "OK", "reused"),
        ({"skipped": True, "table": "silt.main.orders"}, "reused: nothing has changed", "reused"),
        ({"skipped": True, "reused": True}, "reused: it has passed", "reused"),
        ({"skipped": True, "table": "silt.main.orders"}, "skipped, nothing written: run a has done it", "done earlier"),
        ({"skipped": False, "table": "silt.main.orders"}, "v3: 4 inserted", "built"),
    ],
)
def test_a_reused_node_differs_from_one_that_the_run_has_done_earlier(
    response: Mapping[str, Any], message: str, state: str
) -> None:
    result = shop.result("model.shop.orders", "success", (0, 1), 1, message, response)
    [found] = node_results({"results": [result]})
    assert found.state == state


def test_every_command_of_a_run_has_its_own_target_state_and_results(house: House, target: Path) -> None:
    shop.build(house, target)
    night.build(house, target)
    made = shop.made(house, target)
    [run] = [each for each in made["runs"] if each["id"] == night.RUN]
    assert (run["state"], run["targets"]) == ("held", ["nightly"])
    facts = [(each["which"], each["target"], each["state"], each["line"]) for each in run["commands"]]
    assert facts == [("build", "nightly", "held", "dbt build --target nightly")] * 3
    assert [len(each["nodes"]) for each in run["commands"]] == [1, 2, 6]
    assert states_of(made, run["commands"][1]) == {"seed.shop.countries": "reused", "model.shop.orders": "failed"}


def test_a_held_run_of_any_target_is_listed_as_unpublished(house: House, target: Path) -> None:
    shop.build(house, target)
    night.build(house, target)
    made = shop.made(house, target)
    [[run_id, profile, _, is_running, failed]] = made["unpublished"]
    assert (run_id, profile, is_running) == (night.RUN, "nightly", 0)
    assert texts(made, failed) == ["test.shop.unique_id"]


@pytest.mark.parametrize(
    ("which", "is_shown"), [("compile", False), ("generate", False), ("build", True), ("test", True)]
)
def test_results_without_a_record_are_a_run_only_if_their_command_runs_nodes(
    house: House, target: Path, which: str, is_shown: bool
) -> None:
    target.mkdir()
    results = [shop.result("model.shop.orders", "success", (0, 8), 1, "OK")]
    document = {"metadata": {"invocation_id": "unrecorded"}, "args": {"which": which}, "results": results}
    shop.write(target / RESULTS, document)
    runs = shop.made(house, target)["runs"]
    assert [(each["id"], each["commands"][0]["which"]) for each in runs] == [("unrecorded", which)] * is_shown


def test_the_target_of_a_run_of_another_machine_is_that_of_its_commits(house: House) -> None:
    house.running("elsewhere").create("main.orders", rows(0, 3))
    made = json.loads(document(Source(house.catalog, None), 1).json)
    assert [(run["id"], run["targets"]) for run in made["runs"]] == [("elsewhere", ["dev"])]


def test_a_run_of_the_endpoint_names_the_client_of_its_commits(house: House) -> None:
    replace(house, facts=CommitFacts(run_id="night", client="ann (thrift)")).create("main.orders", rows(0, 3))
    made = json.loads(document(Source(house.catalog, None), 1).json)
    assert [(run["id"], run["clients"]) for run in made["runs"]] == [("night", ["ann (thrift)"])]


def test_the_graph_has_models_seeds_and_sources_with_tests_and_freshness(project: Project) -> None:
    nodes = {project["texts"][node["id"]]: node for node in project["nodes"]}
    assert len(nodes) == 10 and not any(name.startswith("test.") for name in nodes)
    late = [project["texts"][project["nodes"][at]["id"]] for at in nodes["model.shop.late"]["parents"]]
    assert late == ["model.shop.orders", "model.shop.customers"]
    assert [texts(project, test)[1:] for test in nodes["model.shop.orders"]["tests"]] == [
        ["unique", "id"],
        ["not_null", "name"],
        ["counts"],
    ]
    assert nodes["source.shop.raw.orders"]["fresh"][0] == "error"


def test_the_graph_knows_existing_views_ephemeral_models_and_exposures(project: Project) -> None:
    nodes = {project["texts"][node["id"]]: node for node in project["nodes"]}
    assert [name for name, node in nodes.items() if "view" in node] == ["model.shop.seen"]
    assert "table" not in nodes["model.shop.inner"] and "table" in nodes["model.shop.late"]
    board = nodes["exposure.shop.board"]
    assert texts(project, [board["kind"], board["how"]]) == ["exposure", "dashboard"]
    parents = [project["texts"][project["nodes"][at]["id"]] for at in board["parents"]]
    assert parents == ["model.shop.held", "model.shop.seen"]


@pytest.mark.parametrize("name", [MANIFEST, RESULTS, SOURCES, "silt_runs.json"])
@pytest.mark.parametrize("content", ["{", "[1]", '{"nodes": [1], "results": 3, "sources": {"a": 1}}', "\ud800"])
def test_an_unreadable_artifact_raises_no_error_and_the_tables_are_shown(
    house: House, target: Path, name: str, content: str
) -> None:
    shop.build(house, target)
    (target / name).write_bytes(content.encode(errors="surrogatepass"))
    made = shop.made(house, target)
    assert len(made["tables"]) == 2
    assert any(name in note for note in made["notes"]) or content.startswith('{"nodes"')


@pytest.mark.parametrize(
    "node",
    [
        {"resource_type": "model"},
        {"resource_type": "model", "config": 3, "columns": [1], "depends_on": {"nodes": 3}, "name": 4},
        {"resource_type": "test", "depends_on": {"nodes": []}},
        {"resource_type": "model", "config": {"freshness": {"build_after": {"count": True, "period": "day"}}}},
    ],
)
def test_a_node_with_missing_or_unexpected_fields_raises_no_error(
    house: House, target: Path, node: Mapping[str, Any]
) -> None:
    target.mkdir()
    (target / MANIFEST).write_text(json.dumps({"nodes": {"model.shop.odd": node}}))
    made = shop.made(house, target)
    assert len(made["nodes"]) == (node["resource_type"] == "model")


def test_without_a_project_the_data_has_tables_and_a_note(house: House) -> None:
    house.create("main.orders", rows(0, 3))
    made = json.loads(document(Source(house.catalog, None), 1).json)
    assert [table["rows"] for table in made["tables"]] == [3]
    assert "no dbt project" in made["notes"][0].lower()


def test_a_damaged_table_is_listed_as_a_problem_and_other_tables_are_shown(house: House, target: Path) -> None:
    house.create("main.sound", rows(0, 3))
    log = house.create("main.broken", rows(0, 3))
    log.store.put(commit_path(1), b"{")
    made = document(Source(house.catalog, target), 1)
    assert made.problems == ("silt.main.broken",)
    broken, sound = json.loads(made.json)["tables"]
    assert "SILT_CORRUPT_LOG" in broken["problem"] and sound["rows"] == 3


def test_the_data_contains_no_secret_of_profile_variables_or_code(project: Project) -> None:
    assert shop.SECRET not in json.dumps(project)


def test_the_data_contains_no_value_of_a_row(house: House, target: Path) -> None:
    log = house.create("main.orders", [{**row, "name": f"private {row['id']}"} for row in rows(0, 3)])
    house.append(log, [{**row, "name": "private too"} for row in rows(9, 3)])
    assert "private" not in json.dumps(shop.made(house, target))


def test_times_are_parsed_in_the_formats_of_dbt() -> None:
    assert milliseconds("2026-01-01T00:00:00.500000Z") == milliseconds("2026-01-01T00:00:00.5") == 1_767_225_600_500
    assert milliseconds("2026-01-01T01:00:00+01:00") == 1_767_225_600_000
    assert milliseconds("yesterday") is None and milliseconds(3) is None
