"""A data test with `reuse: unchanged` runs again only if its input has changed, or it has not passed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

ROWS = "id,name\n1,one\n2,two\n"
MODELS = """
models:
  - name: whole
    columns:
      - name: id
        data_tests:
          - not_null
          - unique: {config: {severity: warn}}
          - relationships: {arguments: {to: "ref('rows')", field: id}}
  - name: seen
    columns: [{name: id, data_tests: [not_null]}]
"""
SEEN = "{{ config(materialized='view') }} select id from {{ ref('whole') }} where id < {{ var('bound', 50) }}"
KNOWN = ("not_null_whole_id", "unique_whole_id", "relationships_whole_id__id__ref_rows_", "not_null_seen_id", "few")


class TestReusedTests:
    @pytest.fixture(scope="class")
    def project_config_update(self) -> Mapping[str, Any]:
        reused = {"+reuse": "unchanged"}
        return {"data_tests": reused, "seeds": reused}

    @pytest.fixture(scope="class")
    def seeds(self) -> Mapping[str, str]:
        return {"rows.csv": ROWS}

    @pytest.fixture(scope="class")
    def models(self) -> Mapping[str, str]:
        whole = "{{ config(materialized='table', reuse='unchanged') }} select * from {{ ref('rows') }}"
        return {"whole.sql": whole, "seen.sql": SEEN, "models.yml": MODELS}

    @pytest.fixture(scope="class")
    def tests(self) -> Mapping[str, str]:
        return {
            "few.sql": "select count(*) as n from {{ ref('whole') }} having count(*) > {{ var('most', 5) }}",
            "chance.sql": "select * from {{ ref('whole') }} where rand() > 2",
            "stored.sql": "{{ config(store_failures=true) }} select * from {{ ref('whole') }} where id > 100",
        }

    def run(self, command: str, *arguments: str, success: bool = True, **variables: Any) -> Mapping[str, Any]:
        """Runs a command, and returns status and response of each data test."""
        results = run_dbt([command, "--vars", json.dumps(variables), *arguments], expect_pass=success)
        tests = [each for each in results.results if str(each.node.resource_type) == "test"]
        return {each.node.name: (str(each.status), each.adapter_response) for each in tests}

    @staticmethod
    def reused(found: Mapping[str, Any]) -> set[str]:
        assert all(status == "pass" for status, response in found.values() if response.get("reused"))
        return {name for name, (_, response) in found.items() if response.get("reused")}

    @pytest.mark.parametrize("command", ["build", "test"])
    def test_a_test_runs_again_only_if_its_input_has_changed(self, project: Any, command: str) -> None:
        write_file(ROWS, project.project_root, "seeds", "rows.csv")
        run_dbt(["build", "--full-refresh", "--exclude-resource-type", "test"])
        first = self.run(command, silt_run_id=f"{command}-sunday")
        assert self.reused(first) == set()
        assert first["few"][1]["reason"] == "it has not passed before" or command == "test"
        assert first["chance"][1]["reason"] == "it uses rand()"

        second = self.run(command, silt_run_id=f"{command}-monday")
        assert self.reused(second) == set(KNOWN)
        whole = f"silt.{project.test_schema}.whole@v"
        message = second["few"][1]["_message"]
        assert message.startswith(f"reused: passed on {whole}")
        assert message.endswith(f"(run {command}-sunday)") or command == "test"
        assert second["few"][1]["reason"] == message.removeprefix("reused: ")

        project.run_sql(f"optimize {project.test_schema}.whole")
        project.run_sql(f"alter table {project.test_schema}.whole set tblproperties ('a' = '{command}')")
        assert self.reused(self.run("test")) == set(KNOWN)

        project.run_sql(f"insert into {project.test_schema}.whole values (3, 'three')")
        write_file(ROWS + "3,three\n", project.project_root, "seeds", "rows.csv")
        run_dbt(["seed"])
        third = self.run("test")
        assert self.reused(third) == set()
        assert f"{whole[5:-2]}" in third["few"][1]["reason"] and "changed (v" in third["few"][1]["reason"]

    def test_a_test_that_failed_or_warned_runs_again(self, project: Any) -> None:
        run_dbt(["build"])
        project.run_sql(f"insert into {project.test_schema}.whole values (2, 'two'), (9, 'nine')")
        for _ in range(2):
            found = self.run("test", success=False)
            assert found["unique_whole_id"][0] == "warn"
            assert found["relationships_whole_id__id__ref_rows_"][0] == "fail"
            assert "unique_whole_id" not in self.reused(found)
        assert "not_null_whole_id" in self.reused(found)

    def test_other_code_of_the_test_or_of_a_view_runs_it_again(self, project: Any) -> None:
        run_dbt(["build", "--full-refresh"], expect_pass=True)
        assert self.reused(self.run("test")) == set(KNOWN)
        assert self.reused(self.run("test", most=7)) == set(KNOWN) - {"few"}
        run_dbt(["run", "--select", "seen", "--vars", "{bound: 40}"])
        found = self.run("test", most=7, bound=40)
        assert self.reused(found) == set(KNOWN) - {"not_null_seen_id"}
        assert found["not_null_seen_id"][1]["reason"].endswith("seen has a new definition")

    def test_reuse_is_switched_off_for_a_command(self, project: Any) -> None:
        run_dbt(["build"])
        assert self.reused(self.run("test", silt_reuse=False)) == set()
        assert self.reused(self.run("build", "--full-refresh")) == set()
        assert self.reused(self.run("build", "--empty", "--exclude-resource-type", "model", "seed")) == set()

    def test_the_output_names_the_tests_that_did_not_run(self, project: Any) -> None:
        run_dbt(["build"])
        _, output = run_dbt_and_capture(["test", "--select", "few"])
        assert "few: reused: passed on silt." in output and "PASS" in output

    def test_a_lost_or_damaged_document_runs_the_test(self, project: Any) -> None:
        run_dbt(["build"])
        folder = Path(project.adapter.config.credentials.warehouse) / "_tests"
        if not folder.is_absolute():
            folder = Path(project.project_root) / folder
        documents = sorted(folder.glob("*.json"))
        assert len(documents) >= len(KNOWN)
        for at, each in enumerate(documents):
            each.write_text("{" if at % 2 else '{"build": 1}')
        assert self.reused(self.run("test")) == set()
        assert self.reused(self.run("test")) == set(KNOWN)

    @pytest.mark.parametrize(
        ("config", "error"),
        [
            ("reuse='sometimes'", "`reuse` cannot be 'sometimes'"),
            ("state={'lag_tolerance': '1h'}", "`state` has no meaning for a data test"),
        ],
    )
    def test_a_value_that_means_nothing_is_refused(self, project: Any, config: str, error: str) -> None:
        write_file("{{ config(" + config + ") }} select 1 as a limit 0", project.project_root, "tests", "bad.sql")
        _, output = run_dbt_and_capture(["test", "--select", "bad"], expect_pass=False)
        (Path(project.project_root) / "tests" / "bad.sql").unlink()
        assert error in output
