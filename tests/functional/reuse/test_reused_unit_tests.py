"""A unit test with `reuse: unchanged` runs again only if something that determines its result has changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, write_file

READER = "select id, {{ scaled('amount') }} as amount, {{ var('added', 0) }} as added from {{ ref('raw') }}"
GROWING = """
{{ config(materialized='incremental', unique_key='id') }}
select id from {{ ref('raw') }} {% if is_incremental() %} where id > (select max(id) from {{ this }}) {% endif %}
"""
UNIT_TESTS = """
unit_tests:
  - name: as_rows
    model: reader
    given: [{input: ref('raw'), rows: [{id: 1, amount: 2}]}]
    expect: {rows: [{id: 1, amount: 20}]}
  - name: as_file
    model: reader
    overrides: {vars: {added: 5}}
    given: [{input: ref('raw'), format: csv, fixture: given}]
    expect: {rows: [{id: 1, added: 5}]}
  - name: as_query
    model: reader
    given: [{input: ref('raw'), format: sql, rows: "select 1 as id, 2 as amount"}]
    expect: {rows: [{id: 1, amount: 20}]}
  - name: own_table
    model: growing
    overrides: {macros: {is_incremental: true}}
    given:
      - {input: ref('raw'), rows: [{id: 1}, {id: 2}]}
      - {input: this, rows: [{id: 1}]}
    expect: {rows: [{id: 2}]}
  - name: over_time
    model: timed
    given: [{input: ref('raw'), rows: [{id: 1}]}]
    expect: {rows: [{id: 1}]}
"""
MODELS = {
    "raw.sql": "{{ config(materialized='table') }} select 1 as id, 2 as amount",
    "reader.sql": READER,
    "growing.sql": GROWING,
    "timed.sql": "select id, current_timestamp() as at from {{ ref('raw') }}",
    "unit_tests.yml": UNIT_TESTS,
}
SCALED = "{% macro scaled(x) %}{{ x }} * 10{% endmacro %}"
ALL = {"as_rows", "as_file", "as_query", "own_table"}
OF_READER = {"as_rows", "as_file", "as_query"}


class TestReusedUnitTests:
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, silt_target: dict[str, Any]) -> dict[str, Any]:
        return {**silt_target, "reuse": "unchanged"}

    @pytest.fixture(scope="class")
    def models(self) -> Mapping[str, str]:
        return MODELS

    @pytest.fixture(scope="class")
    def macros(self) -> Mapping[str, str]:
        return {"scaled.sql": SCALED}

    @pytest.fixture(scope="class")
    def tests(self) -> Mapping[str, Any]:
        return {"fixtures": {"given.csv": "id,amount\n1,2\n"}}

    def run(self, *arguments: str, success: bool = True, **variables: Any) -> Mapping[str, tuple[str, bool]]:
        """Runs the unit tests, and returns the status of each, and whether it was reused."""
        given = ["test", "--select", "test_type:unit", "--vars", json.dumps(variables), *arguments]
        results = run_dbt(given, expect_pass=success)
        return {each.node.name: (str(each.status), bool(each.adapter_response.get("reused"))) for each in results}

    @staticmethod
    def reused(found: Mapping[str, tuple[str, bool]]) -> set[str]:
        assert all(status == "pass" for status, is_reused in found.values() if is_reused)
        return {name for name, (_, is_reused) in found.items() if is_reused}

    def test_a_unit_test_runs_again_only_if_what_determines_it_has_changed(self, project: Any) -> None:
        root = Path(project.project_root)
        run_dbt(["run"])
        assert self.reused(self.run()) == set()
        found = self.run()
        assert self.reused(found) == ALL, "only the test of a query with the time runs again"

        project.run_sql(f"insert into {project.test_schema}.raw values (7, 7)")
        assert self.reused(self.run()) == ALL, "the rows of the real input do not matter"
        assert self.reused(self.run(added=1)) == ALL - {"as_rows", "as_query"}
        assert self.reused(self.run(silt_reuse=False)) == set()

        write_file(SCALED.replace("* 10", "* 10 + 0"), str(root), "macros", "scaled.sql")
        assert self.reused(self.run(added=1)) == {"own_table"}
        write_file("id,amount\n1,3\n", str(root), "tests", "fixtures", "given.csv")
        assert self.reused(self.run(added=1)) == ALL - {"as_file"}

        write_file(MODELS["raw.sql"].replace("2 as", "2L as"), str(root), "models", "raw.sql")
        run_dbt(["run", "--select", "raw"])
        assert self.reused(self.run(added=1)) & OF_READER == set(), "the type of an input has changed"

    def test_a_unit_test_that_failed_runs_again(self, project: Any) -> None:
        root = str(project.project_root)
        write_file(MODELS["raw.sql"], root, "models", "raw.sql")
        run_dbt(["run"])
        self.run()
        write_file(UNIT_TESTS.replace("rows: [{id: 2}]}", "rows: [{id: 3}]}"), root, "models", "unit_tests.yml")
        for _ in range(2):
            assert self.run(success=False)["own_table"] == ("fail", False)
        write_file(UNIT_TESTS, root, "models", "unit_tests.yml")
        assert self.run()["own_table"][0] == "pass"
        assert "own_table" in self.reused(self.run())
