"""A node with `reuse: unchanged` is built only if its code or its inputs have changed since its last build."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

from dbt.adapters.silt.cli.main import main
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName

ROWS = "id,name\n1,one\n2,two\n"
MERGED = """
{{ config(materialized='incremental', unique_key='id') }}
select id, name from {{ ref('stg') }}
"""
APPENDED = """
{{ config(materialized='incremental', incremental_strategy='append') }}
select id from {{ ref('rows') }} {% if is_incremental() %} where id > (select max(id) from {{ this }}) {% endif %}
"""
SCORED = """
def model(dbt, session):
    dbt.config(pure=True)
    return dbt.ref('whole')
"""
HISTORY = """
snapshots: [{name: history, relation: ref('rows'), config: {unique_key: id, strategy: check, check_cols: all}}]
"""


class TestReuse:
    @pytest.fixture(scope="class")
    def project_config_update(self) -> Mapping[str, Any]:
        reused = {"+reuse": "unchanged"}
        return {"models": reused, "seeds": reused, "snapshots": reused}

    @pytest.fixture(scope="class")
    def seeds(self) -> Mapping[str, str]:
        return {"rows.csv": ROWS}

    @pytest.fixture(scope="class")
    def snapshots(self) -> Mapping[str, str]:
        return {"history.yml": HISTORY}

    @pytest.fixture(scope="class")
    def models(self) -> Mapping[str, str]:
        return {
            "stg.sql": "select id, name from {{ ref('rows') }}",
            "whole.sql": "{{ config(materialized='table') }} select id, upper(name) as name from {{ ref('stg') }}",
            "apart.sql": "{{ config(materialized='table') }} select 1 as one",
            "chance.sql": "{{ config(materialized='table') }} select rand() as x from {{ ref('rows') }}",
            "merged.sql": MERGED,
            "appended.sql": APPENDED,
            "scored.py": SCORED,
            "below.sql": "{{ config(materialized='table') }} select count(*) as n from {{ ref('whole') }}",
        }

    def build(self, run_id: str, *arguments: str, **variables: Any) -> Mapping[str, str]:
        """Builds the project, and returns the message of each node."""
        given = json.dumps({"silt_run_id": run_id, **variables})
        results = run_dbt(["build", "--vars", given, *arguments])
        return {each.node.name: str(each.message) for each in results.results}

    def version(self, project: Any, table: str) -> int:
        name = RelationName(project.database, project.test_schema, table)
        return int(project.adapter.connections.catalog.table(name).snapshot().version)

    def test_only_what_changed_is_built(self, project: Any) -> None:
        first = self.build("sunday")
        assert "built: no earlier build" not in first["whole"]
        tables = ("rows", "whole", "apart", "merged", "scored", "history", "below")
        second = self.build("monday")
        kept = {name: self.version(project, name) for name in tables}
        assert {name: second[name].partition(" since")[0] for name in tables} == dict.fromkeys(
            tables, "reused: unchanged"
        )
        assert second["whole"] == f"reused: unchanged since silt.{project.test_schema}.whole@v0 (run sunday)"
        assert second["chance"].endswith("built: it uses rand()")
        assert "built: its compiled code or its configs changed" in second["appended"]

        third = self.build("tuesday")
        assert {name: self.version(project, name) for name in tables} == kept
        assert third["appended"].startswith("reused: unchanged since")

        write_file(ROWS + "3,three\n", project.project_root, "seeds", "rows.csv")
        fourth = self.build("wednesday")
        changed = f"silt.{project.test_schema}.rows changed (v0 -> v1)"
        for name in ("whole", "merged", "history", "appended"):
            assert f"built: {changed}" in fourth[name]
        assert fourth["apart"].startswith("reused")
        assert project.run_sql(f"select n from {project.test_schema}.below", fetch="one")[0] == 3
        assert project.run_sql(f"select count(*) from {project.test_schema}.scored", fetch="one")[0] == 3

        project.run_sql(f"optimize {project.test_schema}.rows")
        project.run_sql(f"alter table {project.test_schema}.whole set tblproperties ('a' = 'b')")
        fifth = self.build("thursday")
        assert fifth["whole"].startswith("reused") and fifth["below"].startswith("reused")

        project.run_sql(f"delete from {project.test_schema}.whole where id = 1")
        sixth = self.build("friday")
        assert f"silt.{project.test_schema}.whole was changed by v" in sixth["whole"]
        assert f"built: silt.{project.test_schema}.whole changed" in sixth["below"]

        assert self.build("saturday", silt_reuse=False)["whole"].endswith("built: silt_reuse is false")
        assert self.build("later", "--full-refresh")["merged"].endswith("built: --full-refresh")

    def test_why_explains_without_building(self, project: Any, capsys: pytest.CaptureFixture[str]) -> None:
        self.build("before")
        versions = {name: self.version(project, name) for name in ("rows", "whole", "below")}
        write_file(ROWS + "4,four\n", project.project_root, "seeds", "rows.csv")
        folders = ["--project-dir", str(project.project_root), "--profiles-dir", str(project.profiles_dir)]
        capsys.readouterr()
        assert main(["why", "+below", "apart", "chance", "--json", *folders]) == 0
        explained = {
            each["node"].split(".")[-1]: (each["reused"], each["reasons"])
            for each in json.loads(capsys.readouterr().out)["nodes"]
        }
        assert explained["apart"][0] and explained["apart"][1][0].startswith("unchanged since")
        assert explained["rows"] == (False, ["its compiled code or its configs changed"])
        assert explained["whole"] == (False, ["seed.test.rows is built before it"])
        assert explained["below"] == (False, ["model.test.whole is built before it"])
        assert explained["chance"] == (False, ["seed.test.rows is built before it", "it uses rand()"])
        assert {name: self.version(project, name) for name in versions} == versions

        assert main(["why", "--changed", *folders]) == 0
        changed = capsys.readouterr().out.split()
        assert {"rows", "whole", "below", "chance"} <= set(changed) and "apart" not in changed

        write_file("{{ no_such_macro() }}", project.project_root, "models", "bad.sql")
        assert main(["why", "no_such_macro", "bad", *folders]) == 2
        (Path(project.project_root) / "models" / "bad.sql").unlink()
        assert main(["why", "apart", "no_such_node", *folders]) == 2

    def test_a_build_of_the_same_rows_builds_nothing_below_it(self, project: Any) -> None:
        write_file(ROWS, project.project_root, "seeds", "rows.csv")
        self.build("again")
        code = "{{ config(materialized='table') }} select id, upper(name) as name from {{ ref('stg') }} where id > 0"
        write_file(code, project.project_root, "models", "whole.sql")
        built = self.build("equal")
        assert "the same rows as before; built: its compiled code" in built["whole"]
        assert built["below"].startswith("reused") and built["scored"].startswith("reused")

    def test_the_result_of_a_reused_node_says_so(self, project: Any) -> None:
        self.build("a")
        self.build("b")
        results = run_dbt(["run", "--select", "apart", "--vars", "{silt_run_id: c}"])
        response = results.results[0].adapter_response
        assert response["reused"] and response["skipped"] and response["table_version"] is not None

    @pytest.mark.parametrize("config", ["reuse='sometimes'", "reuse='unchanged', state={'lag': '1h'}"])
    def test_a_value_that_means_nothing_is_refused(self, project: Any, config: str) -> None:
        write_file(
            "{{ config(materialized='table', " + config + ") }} select 1 as one",
            project.project_root,
            "models",
            "bad.sql",
        )
        _, output = run_dbt_and_capture(["run", "--select", "bad"], expect_pass=False)
        assert "cannot be 'sometimes'" in output or "`state` cannot have lag" in output
