"""The code of a node does not show all that determines its rows: macros behind macros, links, settings of Spark.

After each change, a node is built, and its rows are those of a full build.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

LEGACY = "spark.sql.legacy.castComplexTypesToString.enabled"
OVERRIDE = """
{% macro silt__create_table_as(temporary, relation, sql) %}
  {% set kept = sql if relation.identifier == 'keyed' else 'select * from (' ~ sql ~ ') where ' ~ row_filter() %}
  {{ return(dbt.silt__create_table_as(temporary, relation, kept)) }}
{% endmacro %}
"""
FILTER = "{% macro row_filter() %}{{ return('x ' ~ operator() ~ ' ' ~ var('cut', 0)) }}{% endmacro %}"
OPERATOR = "{% macro operator() %}{{ return('OPERATOR') }}{% endmacro %}"
KEYED = """
{{ config(materialized='incremental', incremental_strategy='changed_keys', unique_key='k') }}
select k, sum(v) as s, cast(named_struct('a', max(v)) as string) as txt from {{ source('raw', 'src') }} group by k
"""
SOURCES = """
sources:
  - name: raw
    schema: "{{ target.schema }}"
    tables: [{name: src, columns: [{name: v, data_tests: [{accepted_values: {arguments: {values: [1, 5]}}}]}]}]
"""
TABLES = ("numbers", "linked_folder", "linked_file", "total", "keyed", "below")


class TestReusedInputs:
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, silt_target: dict[str, Any]) -> dict[str, Any]:
        conf = {**silt_target.get("spark_conf", {}), LEGACY: "{{ env_var('SILT_TEST_LEGACY', 'false') }}"}
        return {**silt_target, "spark_conf": conf, "reuse": "unchanged"}

    @pytest.fixture(scope="class")
    def folder(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        found = tmp_path_factory.mktemp("landed")
        for day, rows in (("day1", "1\n"), ("day2", "22\n33\n")):
            (found / day).mkdir()
            (found / day / "f.csv").write_text(f"a\n{rows}")
        (found / "in").mkdir()
        (found / "in" / "current").symlink_to(found / "day1")
        (found / "in" / "one.csv").symlink_to(found / "day1" / "f.csv")
        return found

    @pytest.fixture(scope="class")
    def macros(self) -> Mapping[str, str]:
        return {"override.sql": OVERRIDE, "filter.sql": FILTER, "operator.sql": OPERATOR.replace("OPERATOR", ">")}

    @pytest.fixture(scope="class")
    def models(self, folder: Path) -> Mapping[str, str]:
        table = "{{ config(materialized='table') }} "
        files = f"from read_files('{folder}/in/%s', format => 'csv', header => true)"
        return {
            "numbers.sql": table + "select * from values (1), (2), (3) as t(x)",
            "linked_folder.sql": table + "select a, 9 as x " + files % "*/*.csv",
            "linked_file.sql": table + "select a, 9 as x " + files % "*.csv",
            "total.sql": table + "select sum(v) as s, 9 as x from {{ source('raw', 'src') }}",
            "keyed.sql": KEYED,
            "below.sql": table + "select count(*) as n, 9 as x from {{ ref('numbers') }}",
            "sources.yml": SOURCES,
        }

    @pytest.fixture(scope="class", autouse=True)
    def built(self, project: Any) -> None:
        project.run_sql(f"create table {project.test_schema}.src (k string, v int)")
        project.run_sql(f"insert into {project.test_schema}.src values ('a', 1)")
        project.run_sql(f"insert into {project.test_schema}.src values ('b', 5)")
        self.build()

    @pytest.fixture(autouse=True)
    def nothing_has_changed(self, built: None) -> None:
        found = self.build()
        assert all("reused: unchanged" in found[name] for name in TABLES), found
        assert "reused: passed on" in found["output"]

    @staticmethod
    def build(**variables: Any) -> dict[str, str]:
        """Builds the project, and returns the message of each node, and the output."""
        results, output = run_dbt_and_capture(["build", "--vars", json.dumps(variables)])
        return {**{each.node.name: str(each.message) for each in results.results}, "output": output}

    def check(self, project: Any, found: Mapping[str, str], changed: set[str], **variables: Any) -> None:
        """Checks that these nodes were built, and that the rows of all nodes equal those of a full build."""
        assert {name for name in TABLES if "reused: unchanged" not in found[name]} == changed, found
        before = {name: self.rows(project, name) for name in TABLES}
        run_dbt(["run", "--full-refresh", "--vars", json.dumps({**variables, "silt_reuse": False})])
        assert {name: self.rows(project, name) for name in TABLES} == before

    @staticmethod
    def rows(project: Any, table: str) -> list[Any]:
        found = project.run_sql(f"select * from {project.test_schema}.{table}", fetch="all")
        return sorted((tuple(each) for each in found), key=repr)

    def test_a_variable_of_a_macro_that_an_overriding_macro_calls(self, project: Any) -> None:
        found = self.build(cut=2)
        self.check(project, found, set(TABLES), cut=2)
        assert self.rows(project, "numbers") == [(3,)]
        self.build()

    def test_a_macro_that_an_overriding_macro_reaches(self, project: Any) -> None:
        write_file(OPERATOR.replace("OPERATOR", ">= 2 + "), project.project_root, "macros", "operator.sql")
        found = self.build()
        self.check(project, found, set(TABLES))
        assert self.rows(project, "numbers") == [(2,), (3,)]
        write_file(OPERATOR.replace("OPERATOR", ">"), project.project_root, "macros", "operator.sql")
        self.build()

    def test_links_that_lead_elsewhere(self, project: Any, folder: Path) -> None:
        for name, target in (("current", folder / "day2"), ("one.csv", folder / "day2" / "f.csv")):
            (folder / "new").symlink_to(target)
            os.replace(folder / "new", folder / "in" / name)
            self.check(project, self.build(), {"linked_folder" if name == "current" else "linked_file"})
            assert self.rows(project, "linked_folder" if name == "current" else "linked_file") == [(22, 9), (33, 9)]
            self.build()

    def test_a_setting_of_spark(self, project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        project.run_sql(f"update {project.test_schema}.src set v = 5 where k = 'a'")
        monkeypatch.setenv("SILT_TEST_LEGACY", "true")
        found = self.build()
        assert LEGACY in found["keyed"], found
        assert [row[-1][0] for row in self.rows(project, "keyed")] == ["[", "["]
        self.check(project, found, set(TABLES))
        monkeypatch.setenv("SILT_TEST_LEGACY", "false")
        self.build()
