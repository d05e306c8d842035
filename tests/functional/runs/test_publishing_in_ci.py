"""A build of a change, published after its tests: it defers to production, selects by state, and begins with clones."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from dbt.cli.main import dbtRunner
from dbt.tests.util import run_dbt, run_dbt_and_capture

from dbt.adapters.silt.engine.catalog.open_databases import open_databases
from dbt.adapters.silt.engine.kernel.storage.settings import Storages
from tests.files import write_files
from tests.functional.runs.test_publishing import HEAD, files, silt, warehouse

MODELS = {
    "base.sql": HEAD + "select id from range(3) as t(id)",
    "doubled.sql": HEAD + "select id * 2 as id from {{ ref('base') }}",
    "events.sql": "{{ config(materialized='incremental', unique_key='id') }} select id from {{ ref('doubled') }}",
    "counted.sql": "select count(*) as n from {{ ref('events') }}",
    "apart.sql": HEAD + "select 1 as one",
    "schema.yml": "models: [{name: doubled, columns: [{name: id, data_tests: [not_null]}]}]",
}
CHANGED = HEAD + "select nullif(id * 3, {{ var('missing', -1) }}) as id from {{ ref('base') }}"
OF_STATE = ("--target", "ci", "--state", "state")


@pytest.mark.manifest
class TestABuildOfAChange:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return MODELS

    @pytest.fixture(scope="class")
    def profiles_config_update(self, dbt_profile_target: dict[str, Any], unique_schema: str) -> dict[str, Any]:
        production = {**deepcopy(dbt_profile_target), "schema": unique_schema}
        of_change = {**deepcopy(production), "schema": f"{unique_schema}_ci", "publish": "after_tests"}
        return {"test": {"outputs": {"prod": production, "ci": of_change}, "target": "prod"}}

    @pytest.fixture(scope="class", autouse=True)
    def production(self, project: Any) -> Mapping[str, bytes]:
        run_dbt(["build"])
        shutil.copytree(Path(project.project_root, "target"), Path(project.project_root, "state"))
        write_files(Path(project.project_root, "models"), {"doubled.sql": CHANGED})
        return files(project)

    def test_clones_become_visible_together(self, project: Any) -> None:
        seen: list[list[str]] = []

        def on_event(event: Any) -> None:
            if event.info.name in ("NodeFinished", "CommandCompleted"):
                seen.append(visible(project))

        place = ["--project-dir", str(project.project_root), "--profiles-dir", str(project.profiles_dir)]
        assert dbtRunner(callbacks=[on_event]).invoke(["clone", *OF_STATE, *place]).success
        assert len(seen) > len(MODELS) - 1 and not any(seen)
        assert visible(project) == ["apart", "base", "counted", "doubled", "events"]
        run_dbt(["clone", *OF_STATE])
        for name in visible(project):
            project.run_sql(f"drop {'view' if name == 'counted' else 'table'} {project.test_schema}_ci.{name}")

    def test_a_failed_test_holds_what_the_build_has_changed(
        self, project: Any, production: Mapping[str, bytes], capsys: pytest.CaptureFixture[str]
    ) -> None:
        _, output = run_dbt_and_capture(build("late", missing=3), expect_pass=False)
        assert "Held: 1 test failed" in output
        assert visible(project) == [] and files(project) == production
        capsys.readouterr()
        query = f"select count(*) as n from {project.test_schema}_ci.doubled where id is null"
        assert silt(project, "sql", "--target", "ci", "--run", "late", "--json", query) == 0
        assert "1" in capsys.readouterr().out

    def test_the_corrected_build_publishes_the_modified_nodes_and_reads_the_others_in_production(
        self, project: Any, production: Mapping[str, bytes]
    ) -> None:
        results = run_dbt(build("late"))
        assert {each.node.name for each in results if each.node.resource_type == "model"} == {
            "counted",
            "doubled",
            "events",
        }
        assert visible(project) == ["counted", "doubled", "events"]
        assert ids(project, "doubled") == ids(project, "events") == [0, 3, 6]
        assert files(project) == production

    def test_a_build_that_changes_nothing_publishes_nothing(self, project: Any) -> None:
        write_files(Path(project.project_root, "models"), {"doubled.sql": MODELS["doubled.sql"]})
        before = visible(project)
        assert len(run_dbt(build("nothing"))) == 0
        assert visible(project) == before


def build(run_id: str, **variables: object) -> list[str]:
    """The build of the modified nodes and the nodes below them."""
    given = json.dumps({"silt_run_id": run_id, **variables})
    return ["build", *OF_STATE, "--defer", "--select", "state:modified+", "--vars", given]


def visible(project: Any) -> list[str]:
    """The relations of the schema of the change that another process sees."""
    catalog = open_databases({project.database: warehouse(project)}, Storages()).catalog
    schema = f"{project.test_schema}_ci"
    if not catalog.has_schema(project.database, schema):
        return []
    return [each.name.identifier for each in catalog.relations(project.database, schema)]


def ids(project: Any, name: str) -> list[int]:
    found = project.run_sql(f"select id from {project.test_schema}_ci.{name} order by id", "all")
    return [row[0] for row in found]
