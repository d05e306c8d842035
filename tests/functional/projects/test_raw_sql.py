"""SQL that a project runs directly, from hooks, operations, tests and macros, on tables whose names need quoting."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

ORDERS = "`raw; data`.`order -- items`"

START = """
/* the first comment; with a semicolon */
create schema if not exists `raw; data`;
-- a second one: 'not a string
create table if not exists `raw; data`.`order -- items` (
    id bigint, `select` string, amount decimal(10, 2), day date, at timestamp, ok boolean, tags array<string>
) partitioned by (day);
"""

MODEL = """
{{ config(
    materialized='table',
    alias='a model',
    pre_hook=["insert into `raw; data`.`order -- items` (id, `select`) values (1, 'a;b'), (2, 'it''s -- no comment')"],
    post_hook=[
        "update {{ this }} set n = n + 1 where id = 1; delete from {{ this }} where id = 2 /* ; */",
        "alter table {{ this }} add columns (`group by` string comment 'it''s; a note');
         update {{ this }} set `group by` = ';' -- the end",
        "{{ set_note(this) }}",
    ],
) }}
select id, `select` as word, 0 as n from `raw; data`.`order -- items`
where {{ rows_in('`raw; data`.`order -- items`') }} >= 0
"""

MACROS = """
{% macro rows_in(relation) %}
  {%- if execute -%}
    {{ return(run_query('select count(*) as n from ' ~ relation).columns['n'].values()[0]) }}
  {%- endif -%}
  {{ return(0) }}
{% endmacro %}

{% macro set_note(relation) %}
  {% do run_query("comment on table " ~ relation ~ " is 'made by a hook; and noted'") %}
{% endmacro %}

{% macro change(relation, statements) %}
  {% for each in statements %}{% do run_query(each | replace('{relation}', relation)) %}{% endfor %}
{% endmacro %}

{% macro ask(query) %}
  {% set rows = run_query(query) %}
  {% set found = [] %}
  {% for row in rows %}{% do found.append(row.values() | list) %}{% endfor %}
  {{ print('ANSWER ' ~ tojson({'columns': rows.column_names | list, 'rows': found | string})) }}
{% endmacro %}
"""


class TestRawSql:
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"on-run-start": [START]}

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"macros.sql": MACROS}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"hooked.sql": MODEL}

    @pytest.fixture(scope="class")
    def tests(self) -> dict[str, str]:
        return {"singular.sql": f"select * from {ORDERS} where `select` = '-- ;' or id is null -- none; at all"}

    def test_statements_of_hooks_run_in_order(self, project: Any) -> None:
        run_dbt(["build"])
        assert project.run_sql("select * from {schema}.`a model`", fetch="all") == [(1, "a;b", 1, ";")]
        [(note,)] = [row[1:2] for row in self._described(project) if row[0] == "Comment"]
        assert note == "made by a hook; and noted"

    def test_an_operation_changes_a_table_according_to_its_arguments(self, project: Any) -> None:
        statements = [
            "insert into {relation} values"
            " (3, null, 1.10, date'2024-02-29', timestamp'2024-02-29 10:00:00.5', true, array('x'))",
            "update {relation} set amount = 7.25 where id = 1",
            "delete from {relation} where id = 2",
        ]
        arguments = json.dumps({"relation": ORDERS, "statements": statements})
        run_dbt(["run-operation", "change", "--args", arguments])
        query = f"select id, `select`, amount, day, at, ok, tags from {ORDERS} order by id"
        assert project.run_sql(query, fetch="all") == [
            (1, "a;b", Decimal("7.25"), None, None, None, None),
            (
                3,
                None,
                Decimal("1.10"),
                datetime.date(2024, 2, 29),
                datetime.datetime(2024, 2, 29, 10, 0, 0, 500000),
                True,
                ["x"],
            ),
        ]

    def test_a_macro_reads_values_of_all_types_and_nulls(self, project: Any) -> None:
        query = f"select id, `select`, amount, day, at, ok from {ORDERS} order by id"
        _, output = run_dbt_and_capture(["run-operation", "ask", "--args", json.dumps({"query": query})])
        [line] = [line for line in output.splitlines() if line.startswith("ANSWER ")]
        answer = json.loads(line.removeprefix("ANSWER "))
        assert answer["columns"] == ["id", "select", "amount", "day", "at", "ok"]
        assert answer["rows"] == str(
            [
                [1, "a;b", Decimal("7.25"), None, None, None],
                [
                    3,
                    None,
                    Decimal("1.10"),
                    datetime.date(2024, 2, 29),
                    datetime.datetime(2024, 2, 29, 10, 0, 0, 500000),
                    True,
                ],
            ]
        )

    @pytest.mark.parametrize(
        ("question", "row"),
        [
            ("describe {orders}", ("amount", "decimal(10,2)", None)),
            ("show tables in `raw; data`", ("raw; data", "order -- items", False)),
            ("show tables in `raw; data` like 'order*'", ("raw; data", "order -- items", False)),
            ("show views in {schema}", ("{schema}", "a view", False)),
            ("show columns in {orders}", ("select",)),
            ("show tblproperties {orders} ('team')", ("team", "us; or them")),
            ("show partitions {orders}", ("day=2024-02-29",)),
            ("show partitions {orders}", ("day=null",)),
            ("show databases", ("raw; data",)),
            ("show schemas like 'raw*'", ("raw; data",)),
            ("show catalogs", ("silt",)),
        ],
    )
    def test_metadata_statements_can_be_run(self, project: Any, question: str, row: tuple[Any, ...]) -> None:
        project.run_sql(f"alter table {ORDERS} set tblproperties ('team' = 'us; or them')")
        project.run_sql("create or replace view {schema}.`a view` as select 1 as id")
        schema = project.test_schema
        expected = tuple(schema if each == "{schema}" else each for each in row)
        assert expected in project.run_sql(question.format(orders=ORDERS, schema=schema), fetch="all")

    def test_show_create_table_returns_a_statement_that_can_be_run(self, project: Any) -> None:
        [(statement,)] = project.run_sql(f"show create table {ORDERS}", fetch="all")
        again = statement.replace("`order -- items`", "`again`")
        project.run_sql(again)
        [(second,)] = project.run_sql("show create table `raw; data`.again", fetch="all")
        assert second == again

    def test_a_table_is_altered_truncated_and_dropped(self, project: Any) -> None:
        for statement in (
            f"alter table {ORDERS} add column `new one` int",
            f"alter table {ORDERS} rename column `new one` to renamed",
            f"alter table {ORDERS} alter column id comment 'the key'",
            f"alter table {ORDERS} drop column renamed",
            f"truncate table {ORDERS}",
        ):
            project.run_sql(statement)
        assert project.run_sql(f"select count(*) from {ORDERS}", fetch="one") == (0,)
        project.run_sql(f"drop table {ORDERS}; drop schema `raw; data` cascade")
        assert ("raw; data",) not in project.run_sql("show schemas", fetch="all")

    def test_a_failing_statement_of_a_hook_fails_the_node_and_names_earlier_commits(self, project: Any) -> None:
        hook = "insert into {{ this }} values (2); select raise_error('no')"
        model = f'{{{{ config(materialized="table", alias="a model", post_hook="{hook}") }}}} select 1 as id'
        write_file(model, project.project_root, "models", "hooked.sql")
        *_, result = run_dbt(["run"], expect_pass=False)
        assert "no" in result.message
        table = f"silt.{project.test_schema}.a model"
        assert (
            f"already committed as {table}@v6, {table}@v7; a rerun with this run id skips that and does the rest"
            in result.message
        )
        assert project.run_sql("select id from {schema}.`a model` order by id", fetch="all") == [(1,), (2,)]

    def test_a_transaction_is_refused_because_statements_are_units_of_work(self, project: Any) -> None:
        arguments = json.dumps({"query": "begin"})
        _, output = run_dbt_and_capture(["run-operation", "ask", "--args", arguments], expect_pass=False)
        assert "dbt's statements are units of work, which are committed one by one" in output

    def _described(self, project: Any) -> list[tuple[Any, ...]]:
        return project.run_sql("describe table extended {schema}.`a model`", fetch="all")
