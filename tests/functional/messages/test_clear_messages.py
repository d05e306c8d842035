"""An error names the user's own words, and a remedy that works."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

UNIT_TESTS = """
unit_tests:
  - {name: by_rows, model: below, given: [{input: ref('eph'), rows: [{id: 1}]}], expect: {rows: [{id: 1}]}}
  - name: by_query
    model: below
    given: [{input: ref('eph'), format: sql, rows: select 1 as id}]
    expect: {rows: [{id: 1}]}
  - {name: of_seed, model: of_seed, given: [{input: ref('rows'), rows: [{id: 1}]}], expect: {rows: [{id: 1}]}}
  - name: of_source
    model: of_source
    given: [{input: "source('raw', 't')", rows: [{id: 1}]}]
    expect: {rows: [{id: 1}]}
  - {name: of_model, model: below_src, given: [{input: ref('src'), rows: [{id: 1}]}], expect: {rows: [{id: 1}]}}
sources: [{name: raw, schema: main, tables: [{name: t}]}]
"""


class TestUnitTestsOfMissingInputs:
    @pytest.fixture(scope="class")
    def seeds(self) -> Mapping[str, str]:
        return {"rows.csv": "id\n1\n"}

    @pytest.fixture(scope="class")
    def models(self) -> Mapping[str, str]:
        return {
            "eph.sql": "{{ config(materialized='ephemeral') }} select 1 as id",
            "below.sql": "select id from {{ ref('eph') }}",
            "of_seed.sql": "select id from {{ ref('rows') }}",
            "of_source.sql": "select id from {{ source('raw', 't') }}",
            "src.sql": "{{ config(materialized='table') }} select 1 as id",
            "below_src.sql": "select id from {{ ref('src') }}",
            "tests.yml": UNIT_TESTS,
        }

    def test_the_remedy_is_possible_for_the_kind_of_the_input(self, project: Any) -> None:
        results = run_dbt(["test", "--select", "test_type:unit"], expect_pass=False)
        said = {each.node.name: str(each.message) for each in results}
        assert "it is ephemeral: no table or view has its columns. Instead, give its rows as a query" in said["by_rows"]
        assert "dbt run" not in said["by_rows"]
        assert {each.node.name: each.status for each in results}["by_query"] == "pass"
        assert "Build it first: dbt seed --select rows" in said["of_seed"]
        assert "Create its table first, or give its rows as a query" in said["of_source"]
        assert "dbt run --empty --select src" in said["of_model"]


class TestMissingTablesBehindOtherNodes:
    @pytest.fixture(scope="class")
    def models(self) -> Mapping[str, str]:
        return {
            "src.sql": "{{ config(materialized='table') }} select 1 as id",
            "eph.sql": "{{ config(materialized='ephemeral') }} select id from {{ ref('src') }}",
            "over_eph.sql": "{{ config(materialized='table') }} select id from {{ ref('eph') }}",
            "seen.sql": "{{ config(materialized='view') }} select id from {{ ref('src') }}",
            "over_view.sql": "{{ config(materialized='table') }} select id from {{ ref('seen') }}",
        }

    @pytest.mark.parametrize("name", ["over_eph", "over_view"])
    def test_the_remedy_is_to_build_the_inputs(self, project: Any, name: str) -> None:
        run_dbt(["run", "--select", "src", "seen"])
        project.run_sql("drop table {schema}.src")
        [result] = run_dbt(["run", "--select", name], expect_pass=False)
        assert f"Build it first: `dbt build --select +{name}`" in str(result.message)
        run_dbt(["build", "--select", f"+{name}"])


class TestShow:
    @pytest.fixture(scope="class")
    def models(self) -> Mapping[str, str]:
        return {"numbers.sql": "{{ config(materialized='table') }} select explode(sequence(1, 9)) as id"}

    @pytest.mark.parametrize(
        ("query", "rows"),
        [
            ("select id from {{ ref('numbers') }} order by id offset 2", [3, 4]),
            ("select id from {{ ref('numbers') }} order by id desc offset 2;", [7, 6]),
            ("from {{ ref('numbers') }} |> where id > 3 |> order by id", [4, 5]),
            ("with n as (from {{ ref('numbers') }} |> where id > 5) select id from n order by id", [6, 7]),
            ("select id from (select id from {{ ref('numbers') }} order by id offset 8)", [9]),
        ],
    )
    def test_a_query_whose_end_takes_no_limit_is_limited(self, project: Any, query: str, rows: list[int]) -> None:
        run_dbt(["run"])
        results = run_dbt(["show", "--limit", "2", "--inline", query])
        assert [row[0] for row in results.results[0].agate_table.rows] == rows

    @pytest.mark.parametrize(
        "statement", ["show tables in {schema}", "describe {schema}.numbers", "describe history {schema}.numbers"]
    )
    def test_a_statement_that_lists_something_is_shown(self, project: Any, statement: str) -> None:
        run_dbt(["run"])
        results = run_dbt(["show", "--inline", statement.format(schema=project.test_schema)])
        assert len(results.results[0].agate_table.rows) >= 1


KEYED = "{{ config(materialized='incremental', incremental_strategy='STRATEGY', CONFIG) }} select 1 as id, 2 as day"
WRONG = {"misspelt": "concat(idd, '-', day)", "unparsed": "[id]", "aggregate": "max(id)"}
SNAPSHOT = """
snapshots:
  - {{name: snapped_{name}, relation: ref('rows'), config: {{unique_key: "{key}", strategy: check, check_cols: [day]}}}}
"""


class TestKeysThatCannotBeComputed:
    @pytest.fixture(scope="class")
    def models(self) -> Mapping[str, str]:
        strategies = {"merge": "merge", "deletes": "delete+insert", "keyed": "changed_keys"}
        wrong = {
            f"{kind}_{name}.sql": KEYED.replace("STRATEGY", strategy).replace("CONFIG", f'unique_key="{key}"')
            for kind, strategy in strategies.items()
            for name, key in WRONG.items()
        }
        return {**wrong, "rows.sql": "{{ config(materialized='table') }} select 1 as id, 2 as day"}

    @pytest.fixture(scope="class")
    def snapshots(self) -> Mapping[str, str]:
        return {f"{name}.yml": SNAPSHOT.format(name=name, key=key) for name, key in WRONG.items()}

    def test_the_first_run_refuses_the_key_and_names_its_config(self, project: Any) -> None:
        run_dbt(["run", "--select", "rows"])
        results = run_dbt(["build", "--exclude", "rows"], expect_pass=False)
        assert len(results) == 12
        for each in results:
            assert each.status == "error", each.node.name
            assert "`unique_key` " in str(each.message), each.message
            assert not project.run_sql(f"show tables in {{schema}} like '{each.node.alias}'", fetch="all")

    def test_expressions_that_can_be_computed_are_keys(self, project: Any) -> None:
        key = "unique_key=\"concat_ws('-', id, date '2026-01-01', named_struct('day', day).day)\""
        write_file(
            KEYED.replace("STRATEGY", "merge").replace("CONFIG", key), project.project_root, "models", "right.sql"
        )
        for _ in range(2):
            run_dbt(["run", "--select", "right"])
        assert project.run_sql("select count(*) from {schema}.right", fetch="one") == (1,)


CONDITIONS = {
    "merged": "incremental_strategy='merge', unique_key='id', incremental_predicates=['DBT_INTERNAL_DEST.dya > 1']",
    "matched": "incremental_strategy='merge', unique_key='id', matched_condition='DBT_INTERNAL_SOURCE.dya > 1'",
    "aliased": "incremental_strategy='merge', unique_key='id', target_alias='t', "
    "not_matched_by_source_action='delete', not_matched_by_source_condition='t.dya > 1'",
    "deleted": "incremental_strategy='delete+insert', unique_key='id', incremental_predicates=['dya > 1']",
    "replaced": "incremental_strategy='replace_where', incremental_predicates=['dya > 1']",
    "unparsed": "incremental_strategy='replace_where', incremental_predicates=['day > > 1']",
}
RIGHT = {
    "right": "incremental_strategy='merge', unique_key='id', target_alias='t', "
    "incremental_predicates=['t.day >= DBT_INTERNAL_SOURCE.day'], matched_condition='t.day < 9'",
    "looks_up": "incremental_strategy='delete+insert', unique_key='id', "
    "incremental_predicates=['day >= (select min(day) from ' ~ this ~ ')']",
}


class TestConditionsWithMisspeltColumns:
    @pytest.fixture(scope="class")
    def models(self) -> Mapping[str, str]:
        query = " select 1 as id, 2 as day"
        return {
            f"{name}.sql": "{{ config(materialized='incremental', " + config + ") }}" + query
            for name, config in {**CONDITIONS, **RIGHT}.items()
        }

    def test_the_first_run_refuses_them(self, project: Any) -> None:
        results = run_dbt(["run", "--select", *CONDITIONS], expect_pass=False)
        for each in results:
            assert each.status == "error", each.node.name
            assert "` has the condition " in str(each.message), each.message
            assert not project.run_sql(f"show tables in {{schema}} like '{each.node.alias}'", fetch="all")

    def test_conditions_on_columns_that_exist_are_accepted(self, project: Any) -> None:
        for _ in range(2):
            run_dbt(["run", "--select", *RIGHT])


DOCUMENTED = """
models:
  - name: seen
    config: {persist_docs: {columns: true}}
    columns:
      - {name: st, description: a struct}
      - {name: st.p, description: a field}
      - {name: st.q, description: another field}
"""


class TestCommentsOfFieldsInViews:
    @pytest.fixture(scope="class")
    def models(self) -> Mapping[str, str]:
        return {"seen.sql": "select named_struct('p', 1, 'q', 2) as st", "seen.yml": DOCUMENTED}

    def test_the_view_stores_them(self, project: Any) -> None:
        _, said = run_dbt_and_capture(["run"])
        assert "is not stored" not in said and "not present in the database" not in said
        assert project.run_sql("describe {schema}.seen", fetch="one")[2] == "a struct"
        relation = project.adapter.Relation.create(project.database, project.test_schema, "seen")
        with project.adapter.connection_named("columns"):
            (column,) = project.adapter.get_columns_in_relation(relation)
        assert {each.column: each.comment for each in column.fields} == {"st.p": "a field", "st.q": "another field"}
