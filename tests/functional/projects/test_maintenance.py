"""The maintenance macros, as operations and in hooks."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from dbt.tests.util import get_connection, run_dbt, run_dbt_and_capture

ORDERS = """
{{ config(materialized='incremental', post_hook=[
  "{{ silt_optimize(this, zorder_by='id') }}", "{{ silt_vacuum(this, lite=true) }}"
]) }}
select id, id % 2 as kind from range({{ var('first', 0) }}, {{ var('first', 0) }} + 10)
"""


class TestUpkeep:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"orders.sql": ORDERS}

    def operation(self, name: str, **arguments: Any) -> str:
        results, output = run_dbt_and_capture(["run-operation", name, "--args", json.dumps(arguments)])
        assert all(str(result.status) == "success" for result in results)
        return str(output)

    def operations(self, project: Any, table: str) -> list[str]:
        """Returns the operations, oldest first."""
        with get_connection(project.adapter):
            _, rows = project.adapter.execute(f"describe history {table}", fetch=True)
        return [row["operation"] for row in reversed(rows.rows)]

    def test_the_maintenance_macros_run_as_operations_and_in_hooks(self, project: Any) -> None:
        table = f"{project.test_schema}.orders"
        run_dbt(["run"])
        run_dbt(["run", "--vars", "{first: 10}"])
        history = self.operations(project, table)
        rounds = ["OPTIMIZE", "VACUUM START", "VACUUM END"]
        assert history == ["CREATE TABLE AS SELECT", *rounds, "WRITE", *rounds]
        assert "CREATE TABLE" in self.operation("silt_history", table=table)

        shown = self.operation("silt_history", table=table, limit=2)
        assert re.search(r"^ *7 +.* VACUUM END ", shown, re.MULTILINE)
        assert "CREATE TABLE" not in shown

        project.run_sql(f"insert into {table} values (20, 0)")
        shown = self.operation("silt_optimize", table=table)
        assert re.search(r"orders@v\d+: 2 files \([\d,]+ bytes\) written again as 1 file ", shown)
        shown = self.operation("silt_vacuum", table=table, retain_hours=200, dry_run=True)
        assert "part-" not in shown
        assert re.search(r"orders: nothing to delete before \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$", shown, re.MULTILINE)

        shown = self.operation("silt_restore", table=table, version=3)
        assert re.search(r"^operation +RESTORE\b", shown, re.MULTILINE)
        assert project.run_sql(f"select count(*) from {table}", fetch="one")[0] == 10
        both = json.dumps({"table": table, "version": 1, "timestamp": "2024-01-01"})
        run_dbt(["run-operation", "silt_restore", "--args", both], expect_pass=False)
        run_dbt(["run-operation", "silt_vacuum", "--args", json.dumps({"table": table, "retain_hours": 1})], False)


OWN_MACRO = """
{% macro keep() %}
  {%- do silt_vacuum() -%}
{% endmacro %}
"""


class TestWithoutATable:
    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"keep.sql": OWN_MACRO}

    def said(self, name: str) -> str:
        _, output = run_dbt_and_capture(["run-operation", name], expect_pass=False)
        return str(output)

    @pytest.mark.parametrize("name", ["silt_vacuum", "silt_optimize", "silt_restore"])
    def test_an_operation_without_a_table_says_so_and_names_no_macro_that_it_is_made_of(
        self, project: Any, name: str
    ) -> None:
        said = self.said(name)
        assert f"{name} needs the name of a table: dbt run-operation {name} --args" in said
        assert "> " not in said

    def test_macros_of_the_project_are_named(self, project: Any) -> None:
        said = self.said("keep")
        assert "silt_vacuum needs the name of a table" in said
        assert "silt_check_table" not in said and "macro keep (macros/keep.sql)" in said
