"""With `reuse: {from: prod}`, a node whose table in another target holds what a build would write is cloned."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

from dbt.adapters.silt.cli.main import main

ROWS = "id,name\n1,one\n2,two\n"
WHOLE = "{{ config(materialized='table', schema='marts') }} select id, upper(name) as name from {{ ref('stg') }}"
MERGED = "{{ config(materialized='incremental', unique_key='id') }} select id from {{ ref('whole') }}"
PYTHON = """
def model(dbt, session):
    dbt.config(pure=True)
    return dbt.ref('rows')
"""


def folders(project: Any) -> list[str]:
    """Returns the options of `silt` that name a project."""
    return ["--project-dir", str(project.project_root), "--profiles-dir", str(project.profiles_dir)]


class TestReuseFromAnotherTarget:
    @pytest.fixture(scope="class")
    def profiles_config_update(self, dbt_profile_target: dict[str, Any], unique_schema: str) -> Mapping[str, Any]:
        base = {**dbt_profile_target, "schema": unique_schema}
        outputs = {
            "prod": {**base, "schema": f"{unique_schema}_prod"},
            "default": base,
            "apart": {**base, "warehouse": "another_warehouse", "schema": "main"},
            "foreign": {**base, "type": "duckdb"},
            "secret": {**base, "schema": "{{ env_var('NO_SUCH_VARIABLE') }}"},
        }
        return {"test": {"outputs": outputs, "target": "default"}}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> Mapping[str, Any]:
        reused = {"+reuse": {"from": "prod"}}
        return {"models": reused, "seeds": reused}

    @pytest.fixture(scope="class")
    def seeds(self) -> Mapping[str, str]:
        return {"rows.csv": ROWS}

    @pytest.fixture(scope="class")
    def models(self) -> Mapping[str, str]:
        return {
            "stg.sql": "select r.id, r.name from {{ ref('rows') }} as r",
            "whole.sql": WHOLE,
            "below.sql": "{{ config(materialized='table') }} select count(*) as n from {{ ref('whole') }}",
            "chance.sql": "{{ config(materialized='table') }} select rand() as x from {{ ref('rows') }}",
            "merged.sql": MERGED,
            "scored.py": PYTHON,
        }

    def build(self, *arguments: str, success: bool = True, **variables: Any) -> Mapping[str, str]:
        """Builds the project, and returns the message of each node."""
        results = run_dbt(["build", "--vars", json.dumps(variables), *arguments], expect_pass=success)
        return {each.node.name: str(each.message) for each in results.results}

    def test_equal_nodes_are_cloned_and_others_are_built(self, project: Any) -> None:
        there, here = f"silt.{project.test_schema}_prod", f"silt.{project.test_schema}"
        first = self.build("--target", "prod", silt_run_id="nightly")
        assert "cloned" not in " ".join(first.values())
        found = self.build(silt_run_id="mine")
        assert found["rows"] == f"cloned: unchanged since {there}.rows@v0 (target prod, run nightly)"
        assert found["whole"] == f"cloned: unchanged since {there}_marts.whole@v0 (target prod, run nightly)"
        assert found["below"] == f"cloned: unchanged since {there}.below@v0 (target prod, run nightly)"
        assert "not cloned from prod: it uses rand()" in found["chance"]
        assert "not cloned from prod: only tables and seeds are cloned" in found["merged"]
        assert "not cloned from prod: python models are not compared" in found["scored"]
        assert project.run_sql(f"select n from {here}.below", fetch="one")[0] == 2
        assert project.run_sql(f"select max(name) from {here}_marts.whole", fetch="one")[0] == "TWO"

        second = self.build(silt_run_id="again")
        for name in ("rows", "whole", "below"):
            assert second[name].startswith("reused: unchanged since"), "a clone is reused like a table that was built"
        assert self.build("--target", "prod", silt_run_id="later")["whole"].startswith("reused: unchanged since")

    def test_a_changed_node_and_what_is_below_it_are_built(self, project: Any) -> None:
        write_file(WHOLE.replace("upper", "lower"), project.project_root, "models", "whole.sql")
        found = self.build(silt_run_id="changed")
        assert found["rows"].startswith("reused")
        assert "its compiled code or its configs changed; not cloned from prod: the code, the configs" in found["whole"]
        assert "cloned" not in found["below"] or "not cloned" in found["below"]
        write_file(WHOLE, project.project_root, "models", "whole.sql")
        back = self.build(silt_run_id="back")
        assert back["whole"].startswith("cloned: unchanged since"), "the table of production still holds these rows"
        assert project.run_sql(f"select max(name) from {project.test_schema}_marts.whole", fetch="one")[0] == "TWO"

    def test_other_rows_of_an_input_are_not_cloned(self, project: Any) -> None:
        self.build("--target", "prod", "--full-refresh", silt_run_id="p1")
        write_file(ROWS + "3,three\n", project.project_root, "seeds", "rows.csv")
        found = self.build(silt_run_id="d1")
        assert "not cloned from prod: the code" in found["rows"]
        assert "not cloned from prod" in found["whole"] and "another table" in found["whole"]
        assert project.run_sql(f"select n from {project.test_schema}.below", fetch="one")[0] == 3
        write_file(ROWS, project.project_root, "seeds", "rows.csv")
        assert self.build(silt_run_id="d2")["below"].startswith("cloned")
        project.run_sql(f"insert into {project.test_schema}_prod_marts.whole values (9, 'NINE')")
        project.run_sql(f"delete from {project.test_schema}.below where n > 0")
        assert self.build(silt_run_id="d3")["below"].startswith("cloned"), "it was built from the rows before"
        assert project.run_sql(f"select n from {project.test_schema}.below", fetch="one")[0] == 2

        project.run_sql(f"insert into {project.test_schema}_prod.below values (7)")
        project.run_sql(f"delete from {project.test_schema}.below where n > 0")
        assert f"not cloned from prod: silt.{project.test_schema}_prod.below was changed by v" in self.build()["below"]
        assert project.run_sql(f"select n from {project.test_schema}.below", fetch="one")[0] == 2

    def test_the_view_in_between_is_compared(self, project: Any) -> None:
        write_file(ROWS, project.project_root, "seeds", "rows.csv")
        self.build("--target", "prod", "--full-refresh", silt_run_id="v1")
        stg = "select r.id, r.name from {{ ref('rows') }} as r where r.id < 2"
        write_file(stg, project.project_root, "models", "stg.sql")
        found = self.build(silt_run_id="v2")
        assert found["rows"].startswith(("cloned", "reused")) and "cloned: " not in found["whole"]
        assert project.run_sql(f"select n from {project.test_schema}.below", fetch="one")[0] == 1
        write_file("select r.id, r.name from {{ ref('rows') }} as r", project.project_root, "models", "stg.sql")

    def test_why_names_the_table_that_a_run_would_clone(self, project: Any, capsys: pytest.CaptureFixture[str]) -> None:
        self.build("--target", "prod", "--full-refresh", silt_run_id="y1")
        self.build(silt_run_id="y2")
        for name in ("below", "rows"):
            project.run_sql(f"drop table {project.test_schema}.{name}")
        there = f"silt.{project.test_schema}_prod"
        found = self.why(project, capsys, "rows", "below")
        cloned = r"unchanged since \S+\.(\w+)@v\d+ \(target prod, run y1\)"
        for name, (result, reasons) in found.items():
            assert result == "cloned" and (match := re.fullmatch(cloned, reasons[0])) and match[1] == name, reasons
        assert found["rows"][1][0].startswith(f"unchanged since {there}.rows@")
        found = self.why(project, capsys, "+below", "chance")
        assert found["whole"][0] == found["below"][0] == "cloned or built"
        assert found["whole"][1][0] == "seed.test.rows is cloned before it"
        assert found["below"][1][0] == "model.test.whole is cloned or built before it"
        found = self.why(project, capsys, "rows", "--vars", "{silt_reuse: false}")
        assert found["rows"] == ("built", ["its table does not exist"])
        found = self.why(project, capsys, "merged", "chance")
        assert found["chance"][1][-1].startswith("not cloned from prod: ")
        assert self.build(silt_run_id="y3")["below"].startswith("cloned")

    def why(
        self, project: Any, capsys: pytest.CaptureFixture[str], *arguments: str
    ) -> Mapping[str, tuple[str, Sequence[str]]]:
        """Returns the result and the reasons of each node, as `silt why` explains them."""
        capsys.readouterr()
        assert main(["why", *arguments, "--json", *folders(project)]) == 0
        nodes = json.loads(capsys.readouterr().out)["nodes"]
        return {each["node"].split(".")[-1]: (each["result"], each["reasons"]) for each in nodes}

    def test_reuse_is_switched_off_for_a_command(self, project: Any) -> None:
        for found in (self.build(silt_reuse=False, silt_run_id="off"), self.build("--full-refresh", silt_run_id="all")):
            assert not any(each.startswith(("cloned", "reused")) for each in found.values())

    def test_a_view_under_the_name_is_replaced_by_a_model_and_kept_by_a_seed(self, project: Any) -> None:
        self.build("--target", "prod", "--full-refresh", silt_run_id="w1")
        for name in ("below", "rows"):
            project.run_sql(f"drop table if exists {project.test_schema}.{name}")
            project.run_sql(f"create view {project.test_schema}.{name} as select 1 as n")
        found = self.build("--select", "rows", success=False)
        assert "it is a view" in found["rows"]
        project.run_sql(f"drop view {project.test_schema}.rows")
        assert self.build(silt_run_id="w2")["below"].startswith("cloned: unchanged since")
        assert project.run_sql(f"select n from {project.test_schema}.below", fetch="one")[0] == 2

    @pytest.mark.parametrize(
        ("value", "error"),
        [
            ("{'from': 'prd'}", "has no target prd; its targets are: "),
            ("{'from': 'foreign'}", "is of the type duckdb, not silt"),
            ("{'from': 'apart'}", "which is not a database of this target. Add it to `databases`"),
            ("{'from': 'secret'}", "uses the environment variable NO_SUCH_VARIABLE, which is not set"),
            ("{'from': 'prod', 'when': 'night'}", "it has one key, `from`, the name of a target"),
            ("{'from': 7}", "it has one key, `from`, the name of a target"),
            ("{}", "it has one key, `from`, the name of a target"),
        ],
    )
    def test_a_bad_target_is_refused_by_name(
        self, project: Any, value: str, error: str, capfd: pytest.CaptureFixture[str]
    ) -> None:
        bad = "{{ config(materialized='table', reuse=" + value + ") }} select 1 as one"
        write_file(bad, project.project_root, "models", "bad.sql")
        _, output = run_dbt_and_capture(["run", "--select", "bad"], expect_pass=False)
        assert main(["why", "bad", *folders(project)]) == 2
        (Path(project.project_root) / "models" / "bad.sql").unlink()
        assert error in output
        said = capfd.readouterr().err
        assert error in said and "Traceback" not in said
