"""The data of the page: which parts of runs, models and artifacts it contains and which it omits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.silt.engine.kernel.table.paths import commit_path
from dbt.adapters.silt.report.artifacts import MANIFEST, RESULTS, SOURCES, milliseconds
from dbt.adapters.silt.report.document import Source, document
from tests.unit.cli.house import House, rows
from tests.unit.report import shop

Project = Mapping[str, Any]


def texts(project: Project, numbers: list[int | None]) -> list[str | None]:
    return [None if number is None else project["texts"][number] for number in numbers]


def test_runs_from_logs_registry_and_results_are_listed_newest_first(project: Project) -> None:
    assert [run["id"] for run in project["runs"]] == ["tuesday", "monday", "broken"]
    assert project["runs"][0]["commands"][0][1].startswith("dbt build --select")
    commands = {run["id"]: run["commands"][0][2] for run in project["runs"]}
    assert commands == {"tuesday": "failed", "monday": "succeeded", "broken": "broken off"}


def test_each_run_has_its_result_its_failures_and_its_nodes(project: Project) -> None:
    runs = {run["id"]: run for run in project["runs"]}
    tuesday, monday = runs["tuesday"], runs["monday"]
    assert (tuesday["state"], tuesday["failed"]) == ("failed", ["late", "unique_id"])
    assert tuesday["counts"] == {"pass": 1, "warn": 1, "error": 2, "skip": 1, "reused": 1}
    assert [texts(project, node[:2]) for node in monday["nodes"]] == [["model.shop.orders", "built"]]
    assert (runs["broken"]["state"], "nodes" in runs["broken"]) == ("broken off", False)


def test_only_the_newest_runs_but_all_tables_are_shown(house: House, target: Path) -> None:
    shop.build(house, target)
    made = json.loads(document(Source(house.catalog, target, runs=1), 1).json)
    assert [run["id"] for run in made["runs"]] == ["tuesday"]
    assert len(made["tables"]) == 2


def test_a_skipped_unit_names_the_commit_that_did_its_work(project: Project) -> None:
    [[node, table, _, version]] = project["runs"][0]["skips"]
    assert (*texts(project, [node, table]), version) == ("model.shop.customers", "silt.main.customers", 0)


def test_results_show_whether_nodes_were_built_skipped_blocked_or_failed(project: Project) -> None:
    results = project["results"]
    assert (results["run"], results["command"]) == ("tuesday", "build")
    states = dict(texts(project, node[:2]) for node in results["nodes"])
    assert states == {
        "model.shop.orders": "built",
        "model.shop.customers": "skipped",
        "model.shop.late": "failed",
        "model.shop.held": "blocked",
        "test.shop.unique_id": "failed",
        "test.shop.not_null_name": "warned",
    }


def test_the_graph_has_models_seeds_and_sources_with_tests_and_freshness(project: Project) -> None:
    nodes = {project["texts"][node["id"]]: node for node in project["nodes"]}
    assert len(nodes) == 7 and not any(name.startswith("test.") for name in nodes)
    late = [project["texts"][project["nodes"][at]["id"]] for at in nodes["model.shop.late"]["parents"]]
    assert late == ["model.shop.orders", "model.shop.customers"]
    assert [texts(project, test)[1:] for test in nodes["model.shop.orders"]["tests"]] == [
        ["unique", "id"],
        ["not_null", "name"],
    ]
    assert nodes["source.shop.raw.orders"]["fresh"][0] == "error"


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
