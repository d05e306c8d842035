"""Statements of a node, or of an operation, besides its own write: each is a unit of work identified by its text."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName

SCRIPT = """
{% materialization script, adapter='silt' %}
  {%- set later = config.get('later') if load_cached_relation(this) is not none else none -%}
  {%- set steps = later or config.get('first') -%}
  {{ run_hooks(pre_hooks) }}
  {%- for step in steps -%}
    {%- do killed() if loop.index0 == var('die_before', none) -%}
    {%- set text = step | replace('THIS', this | string) | replace('ROWS', sql) -%}
    {%- if text.startswith('main:') -%}
      {%- call statement('main') -%}{{ text[5:] }}{%- endcall -%}
    {%- else -%}
      {%- do run_query(text) -%}
    {%- endif -%}
  {%- endfor -%}
  {%- do killed() if steps | length <= var('die_before', 0) -%}
  {%- if not load_result('main') -%}
    {%- call noop_statement('main', 'SCRIPT') -%}select 1{%- endcall -%}
  {%- endif -%}
  {{ run_hooks(post_hooks) }}
  {{ return({'relations': [this.incorporate(type='table')]}) }}
{% endmaterialization %}


{% macro killed() %}
  {%- do exceptions.raise_compiler_error('killed') -%}
{% endmacro %}
"""

SCRIPTS: dict[str, tuple[list[str], list[str] | None, int]] = {
    "dropped": (["drop table if exists THIS", "create table THIS (id bigint)", "main:insert into THIS ROWS"], None, 0),
    "truncated": (
        ["create table THIS (id bigint)", "main:insert into THIS ROWS"],
        ["truncate table THIS", "main:insert into THIS ROWS"],
        0,
    ),
    "emptied": (["create or replace table THIS (id bigint)", "main:insert into THIS ROWS"], None, 0),
    "replaced": (["main:create or replace table THIS as ROWS"], None, 0),
    "deleted": (["main:create table THIS as ROWS"], ["delete from THIS", "main:insert into THIS ROWS"], 0),
    "deleted_in_one": (["main:create table THIS as ROWS"], ["main:delete from THIS; insert into THIS ROWS"], 0),
    "merged": (
        ["main:create table THIS as ROWS"],
        ["main:merge into THIS as t using (ROWS) as s on t.id = s.id when not matched then insert *"],
        0,
    ),
    "appended": (["main:create table THIS as ROWS"], ["main:insert into THIS ROWS"], 4),
    "staged": (
        ["main:create table THIS as ROWS"],
        ["create or replace table THIS_staged as ROWS", "main:insert into THIS select * from THIS_staged"],
        4,
    ),
    "viewed": (
        ["main:create table THIS as ROWS"],
        ["create or replace temporary view rows_of_it as ROWS", "main:insert into THIS select * from rows_of_it"],
        4,
    ),
    "swapped": (
        [
            "drop table if exists THIS_new",
            "main:create table THIS_new as ROWS",
            "drop table if exists THIS",
            "alter table THIS_new rename to THIS",
        ],
        None,
        0,
    ),
    "constrained": (
        ["main:create or replace table THIS as ROWS", "alter table THIS add constraint some check (id >= 0)"],
        None,
        0,
    ),
    "unnamed": (
        ["create or replace table THIS (id bigint)", "insert into THIS ROWS", "delete from THIS where id > 1",
         "insert into THIS select id + 2 from THIS"],
        None,
        0,
    ),
}  # fmt: skip
"""The effect of each if its table is missing, and if it exists, and the number of rows that a run adds to the first
run's.
"""


def script(name: str) -> str:
    first, later, _ = SCRIPTS[name]
    steps = [
        [step.replace("THIS_", "{{ target.schema }}." + name + "_") for step in each or ()] for each in (first, later)
    ]
    return (
        f"{{{{ config(materialized='script', first={_jinja(steps[0])}, later={_jinja(steps[1])}) }}}}\n"
        "select id from range(4)"
    )


def _jinja(steps: list[str]) -> str:
    texts = ", ".join("'" + step.replace("{{ target.schema }}", "' ~ target.schema ~ '") + "'" for step in steps)
    return f"[{texts}]"


class TestMaterializationsOfTheProject:
    """Killed before each of their statements, and resumed with the same run id: no write is lost or repeated."""

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"script.sql": SCRIPT}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {f"{name}.sql": script(name) for name in SCRIPTS}

    def test_a_rerun_does_the_missing_work_if_the_tables_were_missing(self, project: Any) -> None:
        for place in range(1, 5):
            names = [name for name, (first, _, _) in SCRIPTS.items() if place <= len(first)]
            for name in names:
                project.run_sql(f"drop table if exists {project.test_schema}.{name}")
            self._kill_and_continue(f"made{place}", place, names)
            assert {name: ids(project, name) for name in names} == {name: [0, 1, 2, 3] for name in names}

    def test_a_rerun_does_the_missing_work_if_the_tables_existed(self, project: Any) -> None:
        for place in range(1, 5):
            names = [name for name, (first, later, _) in SCRIPTS.items() if place <= len(later or first)]
            before = {name: ids(project, name) for name in names}
            self._kill_and_continue(f"changed{place}", place, names)
            expected = {name: sorted(before[name] + list(range(SCRIPTS[name][2]))) for name in names}
            assert {name: ids(project, name) for name in names} == expected

    def _kill_and_continue(self, run_id: str, place: int, names: list[str]) -> None:
        """Kills the models before the statement of that number, or after the last statement."""
        for variables in ({"die_before": place}, {}):
            all_variables = json.dumps({"silt_run_id": run_id, **variables})
            run_dbt(["run", "--select", *names, "--vars", all_variables], expect_pass=not variables)


def ids(project: Any, table: str) -> list[int]:
    rows = project.run_sql(f"select id from {project.test_schema}.{table} order by id", fetch="all")
    return [row[0] for row in rows]


BODY = """
{{ config(materialized='incremental', incremental_strategy='append') }}
{% if execute and is_incremental() %}
  {% do run_query('delete from ' ~ this ~ " where '" ~ invocation_id ~ "' <> ''") %}
{% endif %}
{% if execute %}
  {% do run_query('insert into ' ~ target.schema ~ '.seen values (' ~ var('round', 1) ~ ')') %}
  {% call statement('again') %} insert into {{ target.schema }}.seen values ({{ var('round', 1) }}) {% endcall %}
{% endif %}
select id from range(4) {% if var('fail', false) %} where raise_error('killed') is null {% endif %}
"""
PRE_HOOK = """
{{ config(
  materialized='incremental', incremental_strategy='append',
  pre_hook="{% if is_incremental() %} delete from {{ this }} where true {% endif %}",
) }}
select id from range(4)
"""


class TestStatementsOfAModelsSql:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"body.sql": BODY, "hooked.sql": PRE_HOOK}

    def test_statements_in_a_models_sql_are_applied_once_in_a_run_and_never_after_the_models_own_write(
        self, project: Any
    ) -> None:
        project.run_sql(f"create table {project.test_schema}.seen (id int)")
        for variables in ({"fail": True}, {}, {}, {"silt_run_id": "R2", "round": 2}, {"silt_run_id": "R2", "round": 2}):
            all_variables = {"silt_run_id": "R1", **variables}
            _, output = run_dbt_and_capture(
                ["run", "--vars", json.dumps(all_variables)], expect_pass="fail" not in all_variables
            )
            round_ = all_variables.get("round", 1)
            assert ids(project, "seen") == [1, 1, 2, 2][: 2 * round_]  # type: ignore[operator]
            if "fail" not in all_variables:
                assert ids(project, "body") == ids(project, "hooked") == [0, 1, 2, 3]
        assert "before the node's own write, which run R2 has already applied" in output

    def test_a_failing_model_names_the_commits_of_its_sql(self, project: Any) -> None:
        variables = json.dumps({"silt_run_id": "R3", "round": 3, "fail": True})
        _, output = run_dbt_and_capture(["run", "--select", "body", "--vars", variables], expect_pass=False)
        assert f"already committed as silt.{project.test_schema}.body@v" in output
        assert f", silt.{project.test_schema}.seen@v" in output


OPERATION = """
{% macro load(n, fail_after=none) %}
  {% set log = target.schema ~ '.loaded' %}
  {% do run_query('create table if not exists ' ~ log ~ ' (n int)') %}
  {% do run_query('insert into ' ~ log ~ ' values (' ~ n ~ ')') %}
  {% if fail_after == 1 %}{% do exceptions.raise_compiler_error('killed') %}{% endif %}
  {% call statement('rest') %} insert into {{ log }} values ({{ n }}); insert into {{ log }} values (0) {% endcall %}
  {% set found = run_query('select count(*) from ' ~ log) %}
  {% do print('found ' ~ found.rows[0][0]) %}
{% endmacro %}
"""


class TestOperations:
    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"load.sql": OPERATION}

    def load(self, run_id: str, expect_pass: bool = True, **arguments: Any) -> str:
        variables = json.dumps({"silt_run_id": run_id})
        command = ["run-operation", "load", "--args", json.dumps(arguments), "--vars", variables]
        _, output = run_dbt_and_capture(command, expect_pass=expect_pass)
        return str(output)

    def test_each_statement_of_an_operation_is_applied_once_in_a_run(self, project: Any) -> None:
        output = self.load("R1", False, n=1, fail_after=1)
        assert f"already committed as silt.{project.test_schema}.loaded@v0" in output
        assert "found 3" in self.load("R1", n=1)
        output = self.load("R1", n=1)
        assert "found 3" in output
        assert "to do it again, use a new run id" in output
        assert "found 6" in self.load("R2", n=1)
        names = self._recorded(project)
        assert len(names) == 7
        assert all(re.fullmatch("silt/test/load/R[12]/default/run_operation/[0-9a-f]{16}/[12]", each) for each in names)

    def test_a_restore_is_applied_once_in_a_run_and_reports_the_skip(self, project: Any) -> None:
        table = f"{project.test_schema}.loaded"
        arguments = json.dumps({"table": table, "version": 1})
        restore = ["run-operation", "silt_restore", "--args", arguments, "--vars", "silt_run_id: R3"]
        run_dbt(restore)
        project.run_sql(f"insert into {table} values (9)")
        _, output = run_dbt_and_capture(restore)
        assert project.run_sql(f"select count(*) from {table}", fetch="one") == (2,)
        assert "skipped, nothing written: run R3" in output
        assert "found 4" in self.load("R1", n=1), "what the restore took back is done again"

    def test_maintenance_is_not_a_unit_of_work(self, project: Any) -> None:
        table = f"{project.test_schema}.loaded"
        for name in ("silt_optimize", "silt_vacuum", "silt_history"):
            for _ in range(2):
                command = ["run-operation", name, "--args", json.dumps({"table": table}), "--vars", "silt_run_id: R4"]
                _, output = run_dbt_and_capture(command)
                assert "skipped" not in output
        assert not any("/R4/" in each for each in self._recorded(project))

    def _recorded(self, project: Any) -> list[str]:
        name = RelationName(project.database, project.test_schema, "loaded")
        return sorted(project.adapter.connections.catalog.table(name).snapshot().transactions)
