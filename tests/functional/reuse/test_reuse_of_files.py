"""Files that a project names are compared, through views too; files that a log alone names are never listed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt

from dbt.adapters.silt.cli.main import main
from dbt.adapters.silt.engine.statements.resolve import stored_code

SOURCES = """
sources:
  - name: raw
    meta: {external_location: "landing/{name}.csv"}
    tables: [{name: orders, columns: [{name: id, data_type: bigint}]}]
"""
TABLE = "{{ config(materialized='table', reuse='unchanged') }} select * from "
PURE = """
def model(dbt, session):
    dbt.config(pure=True, reuse='unchanged')
    return dbt.source('raw', 'orders')
"""
TABLES = ("above", "above_composed", "over_source", "direct", "pure")
_OLD_NS = 1_000_000_000


class TestReuseOfFiles:
    @pytest.fixture(scope="class")
    def files(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        folder = tmp_path_factory.mktemp("it's")
        (folder / "a.csv").write_text("id\n1\n")
        return folder

    @pytest.fixture(scope="class")
    def models(self, files: Path) -> dict[str, str]:
        path = str(files).replace("'", "''")
        return {
            "sources.yml": SOURCES,
            "seen.sql": f"select * from read_files('{path}/a.csv', header => true)",
            "seen_source.sql": "select * from {{ source('raw', 'orders') }}",
            "composed.sql": f'{{% set folder = "{path}" %}}'
            "select * from read_files('{{ folder ~ '/a' }}.csv', header => true)",
            "above.sql": TABLE + "{{ ref('seen') }}",
            "above_composed.sql": TABLE + "{{ ref('composed') }}",
            "over_source.sql": TABLE + "{{ ref('seen_source') }}",
            "direct.sql": TABLE + f"read_files('{path}/*.csv', header => true) where id < 9",
            "pure.py": PURE,
            "checked.sql": "select 1",
        }

    @pytest.fixture(scope="class")
    def tests(self) -> dict[str, str]:
        return {"few.sql": "{{ config(reuse='unchanged') }} select * from {{ ref('seen_source') }} where id > 99"}

    @pytest.fixture(autouse=True)
    def landed(self, project: Any) -> Path:
        folder = Path(project.project_root, "landing")
        folder.mkdir(exist_ok=True)
        (folder / "orders.csv").write_text("id\n1\n")
        os.utime(folder / "orders.csv", ns=(_OLD_NS, _OLD_NS))
        return folder

    def build(self, *arguments: str) -> dict[str, str]:
        """Returns the message of each node."""
        results = run_dbt(["build", *arguments])
        return {each.node.name: each.adapter_response.get("_message", "") for each in results}

    def test_files_are_compared_by_the_code_that_names_them(
        self, project: Any, files: Path, landed: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.build()
        second = self.build()
        assert {each: second[each].partition(":")[0] for each in TABLES} == dict.fromkeys(TABLES, "reused")
        assert second["few"].startswith("reused")
        monkeypatch.setattr(stored_code, "_named", set())
        alone = self.build("--select", *TABLES)
        assert {each: alone[each].partition(":")[0] for each in TABLES} == dict.fromkeys(TABLES, "reused")
        (files / "a.csv").write_text("id\n1\n2\n")
        (landed / "orders.csv").write_text("id\n1\n3\n")
        third = self.build("--select", *TABLES, "few")
        for name in ("above", "above_composed"):
            assert f"the files of {files}/a.csv changed" in third[name]
        assert f"the files of {files}/*.csv changed" in third["direct"]
        for name in ("over_source", "pure"):
            assert f"the files of {landed}/orders.csv changed" in third[name]
        assert not third["few"].startswith("reused")

    def test_files_that_a_log_alone_names_are_not_listed(
        self, project: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.build()
        (tmp_path / "home" / "sub").mkdir(parents=True)
        os.utime(tmp_path / "home", ns=(_OLD_NS, 2 * _OLD_NS))
        for name in TABLES:
            self.state(project, name, f"{tmp_path}/home")
        project.run_sql(f"create or replace view {project.test_schema}.seen as select '{tmp_path}/home' as id")
        folders = ["--project-dir", str(project.project_root), "--profiles-dir", str(project.profiles_dir)]
        capsys.readouterr()
        assert main(["why", *TABLES, "--json", *folders]) == 0
        reasons = [" ".join(each["reasons"]) for each in json.loads(capsys.readouterr().out)["nodes"]]
        built = self.build("--select", *TABLES)
        for said in (*reasons, *(built[name] for name in TABLES)):
            assert f"it reads other files: its code does not name {tmp_path}/home" in said
        assert os.stat(tmp_path / "home").st_atime_ns == _OLD_NS

    def state(self, project: Any, name: str, path: str) -> None:
        """Lets the last commit of a table state that its build has read the files."""
        warehouse = Path(project.adapter.config.credentials.warehouse)
        file = max((warehouse / project.test_schema / name / "_delta_log").glob("*.json"))
        actions = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        for each in actions:
            if "commitInfo" in each:
                each["commitInfo"]["build"]["files"] = {path: "x"}
        file.write_text("".join(f"{json.dumps(each)}\n" for each in actions), encoding="utf-8")
