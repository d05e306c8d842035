"""A view with `reuse: unchanged` is created again only if something that determines it has changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, write_file

ROWS = "id,name\n1,one\n2,two\n"
SEEN = "select * from {{ ref('whole') }}"
MODELS = """
models:
  - name: seen
    description: "{{ var('described', 'rows') }}"
    config: {persist_docs: {relation: true, columns: true}}
    columns: [{name: id, description: the key}]
    data_tests: [{unique: {arguments: {column_name: id}}}]
"""


class TestReusedViews:
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**dbt_profile_target, "reuse": "unchanged"}

    @pytest.fixture(scope="class")
    def seeds(self) -> Mapping[str, str]:
        return {"rows.csv": ROWS}

    @pytest.fixture(scope="class")
    def models(self) -> Mapping[str, str]:
        return {
            "whole.sql": "{{ config(materialized='table') }} select * from {{ ref('rows') }}",
            "seen.sql": SEEN,
            "above.sql": "select id from {{ ref('seen') }}",
            "hooked.sql": "{{ config(post_hook='select 1') }} select 1 as id",
            "never.sql": "{{ config(reuse='never') }} select 1 as id",
            "models.yml": MODELS,
        }

    @pytest.fixture(autouse=True)
    def built(self, project: Any) -> None:
        write_file(ROWS, project.project_root, "seeds", "rows.csv")
        write_file(SEEN, project.project_root, "models", "seen.sql")
        run_dbt(["build", "--full-refresh"])

    def run(self, *arguments: str, success: bool = True, **variables: Any) -> Mapping[str, Any]:
        """Builds the views, and returns the response of each."""
        select = ["--select", "config.materialized:view", "--exclude-resource-type", "test"]
        results = run_dbt(["build", *select, *arguments, "--vars", json.dumps(variables)], expect_pass=success)
        return {each.node.name: each.adapter_response for each in results.results}

    def reused(self, *arguments: str, **variables: Any) -> set[str]:
        return {name for name, response in self.run(*arguments, **variables).items() if response.get("reused")}

    def test_an_unchanged_view_is_reused_whatever_the_rows_that_it_reads(self, project: Any) -> None:
        found = self.run()
        assert {name for name, response in found.items() if response.get("reused")} == {"seen", "above"}
        assert found["seen"]["_message"].startswith("reused: unchanged since it was created (run ")
        project.run_sql(f"insert into {project.test_schema}.whole values (3, 'three')")
        assert self.reused() == {"seen", "above"}
        assert project.run_sql(f"select count(*) from {project.test_schema}.above", fetch="one") == (3,)

    def test_a_command_that_writes_nothing_needs_no_session(self, project: Any) -> None:
        mark = Path(project.project_root, "target", "silt_no_spark_build")
        build = ["build", "--exclude", "hooked", "never", "rows"]
        run_dbt(build)
        run_dbt(build)
        assert mark.exists()
        project.run_sql(f"drop view {project.test_schema}.above")
        run_dbt(build)
        assert not mark.exists()

    def test_a_view_is_created_again_for_other_columns(self, project: Any) -> None:
        project.run_sql(f"alter table {project.test_schema}.whole add columns (more int)")
        found = self.run()
        assert found["seen"]["reason"] == f"silt.{project.test_schema}.whole has other columns"
        assert "reused" not in found["above"]
        assert self.reused() == {"seen", "above"}

    def test_a_view_that_lacks_its_input_fails(self, project: Any) -> None:
        project.run_sql(f"drop table {project.test_schema}.whole")
        run_dbt(["run", "--select", "seen"], expect_pass=False)

    def test_a_view_is_created_again_for_another_text_or_description(self, project: Any) -> None:
        assert self.reused(described="others") == {"above"}
        write_file(f"{SEEN} where id < 9", project.project_root, "models", "seen.sql")
        assert self.reused(described="others") == set()

    @pytest.mark.parametrize(
        "change",
        [
            "alter view {}.seen as select id, name from {}.whole where id < 2",
            "comment on view {}.seen is 'another comment'",
            "drop view {}.seen",
        ],
    )
    def test_a_view_that_another_writer_has_changed_is_created_again(self, project: Any, change: str) -> None:
        project.run_sql(change.format(project.test_schema, project.test_schema))
        assert "seen" not in self.reused()
        assert project.run_sql(f"select count(*) from {project.test_schema}.seen", fetch="one") == (2,)

    def test_the_switches_of_reuse_create_every_view(self, project: Any) -> None:
        assert self.reused("--full-refresh") == set()
        assert self.reused(silt_reuse=False) == set()
        assert self.reused("--empty") == set()
        assert "seen" not in self.reused()
