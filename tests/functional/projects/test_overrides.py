"""Materializations and macros with which a project overrides dbt's: they are used, or a warning states that they are
not.
"""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

from tests.files import write_files

PACKAGE = {
    "dbt_project.yml": "name: samples\nversion: '1.0'\nconfig-version: 2\nmacro-paths: [macros]\n",
    # Packages that collect samples do this: they run dbt's materialization first, then inspect its result.
    "macros/samples.sql": """
{% materialization test, default %}
  {%- set result = dbt.materialization_test_default() -%}
  {%- do run_query(
    "insert into " ~ target.schema ~ ".samples select '" ~ model.name ~ "', " ~ load_result('main').table.rows[0][0]
  ) -%}
  {{ return(result) }}
{% endmaterialization %}

{% materialization external, default %}
  {%- call statement('main') -%}
    create or replace table {{ this }} as select 'of the package' as made
  {%- endcall -%}
  {{ return({'relations': [this.incorporate(type='table')]}) }}
{% endmaterialization %}

{% materialization table, default %}
  {%- do exceptions.raise_compiler_error("dbt-spark's is taken before this") -%}
{% endmaterialization %}
""",
}

MACROS = """
{% materialization test, default %}
  {{ return(samples.materialization_test_default()) }}
{% endmaterialization %}

{% materialization seed, default %}
  {%- do store_result('agate_table', response='OK', agate_table=load_agate_table()) -%}
  {%- call statement('main') -%}
    create or replace table {{ this }} as select '{{ load_agate_table().rows | length }} lines' as made
  {%- endcall -%}
  {{ return({'relations': [this.incorporate(type='table')]}) }}
{% endmaterialization %}

{% materialization view, adapter='spark' %}
  {%- call statement('main') -%}
    create or replace view {{ this }} as select *, 'of the project' as made from ({{ sql }})
  {%- endcall -%}
  {{ return({'relations': [this.incorporate(type='view')]}) }}
{% endmaterialization %}

{% macro default__post_snapshot(staging_relation) %}
  {%- do exceptions.raise_compiler_error("not called") -%}
{% endmacro %}

{% macro default__load_csv_rows(model, agate_table) %}
  {%- do exceptions.raise_compiler_error("of a materialization that is replaced itself") -%}
{% endmacro %}

{% macro default__type_float() %}float{% endmacro %}
"""


class TestOverrides:
    @pytest.fixture(scope="class")
    def packages(self, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
        folder = tmp_path_factory.mktemp("samples")
        write_files(folder, PACKAGE)
        return {"packages": [{"local": str(folder)}]}

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"own.sql": MACROS}

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"lines.csv": "a\n1\n2\n"}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "numbers.sql": "{{ config(materialized='view') }} select cast(3 as {{ dbt.type_float() }}) as n",
            "files.sql": "{{ config(materialized='external') }} select 1 as n",
            "kept.sql": "{{ config(materialized='table') }} select * from {{ ref('numbers') }}",
        }

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {
            "numbers_then.sql": "{% snapshot numbers_then %}"
            "{{ config(unique_key='n', strategy='check', check_cols='all') }} select 1 as n {% endsnapshot %}"
        }

    @pytest.fixture(scope="class")
    def tests(self) -> dict[str, str]:
        return {
            "large.sql": "select * from {{ ref('numbers') }} where n > 1",
            "stored.sql": "{{ config(store_failures=true) }} select * from {{ ref('numbers') }} where n > 2",
        }

    @pytest.fixture(scope="class")
    def printed(self, project: Any) -> str:
        project.run_sql(f"create table {project.test_schema}.samples (name string, failures bigint)")
        run_dbt(["deps"])
        _, printed = run_dbt_and_capture(["build", "--exclude-resource-type", "test"])
        results = run_dbt(["test"], expect_pass=False)
        assert {(each.node.name, each.status) for each in results} == {("large", "fail"), ("stored", "fail")}
        return printed

    def rows(self, project: Any, query: str) -> list[tuple[Any, ...]]:
        rows = project.run_sql(query.format(place=project.test_schema), fetch="all")
        return sorted(map(tuple, rows))

    def test_the_projects_test_materialization_wraps_the_adapters_also_if_failures_are_stored(
        self, project: Any, printed: str
    ) -> None:
        assert self.rows(project, "select * from {place}.samples") == [("large", 1), ("stored", 1)]
        assert self.rows(project, "select n from {place}_dbt_test__audit.stored") == [(3.0,)]

    def test_a_project_overrides_dbt_sparks_macros_with_and_without_the_prefix_spark(
        self, project: Any, printed: str
    ) -> None:
        assert self.rows(project, "select made from {place}.lines") == [("2 lines",)]
        assert self.rows(project, "select made, typeof(n) from {place}.numbers") == [("of the project", "float")]

    def test_a_package_overrides_a_macro_that_only_dbt_itself_defines(self, project: Any, printed: str) -> None:
        assert self.rows(project, "select made from {place}.files") == [("of the package",)]
        assert self.rows(project, "select n from {place}.kept") == [(3.0,)]

    def test_a_macro_that_is_never_called_is_named_once_in_a_warning(self, project: Any, printed: str) -> None:
        assert printed.count("The macro `default__post_snapshot` of test is not called") == 1
        assert printed.count("is not called: the materialization") == 1
