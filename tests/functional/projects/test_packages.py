"""Macros of packages and of the user's project, without `dispatch` settings: the order in which they are found."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

from tests.files import write_files

PACKAGE = {
    "dbt_project.yml": "name: tools\nversion: '1.0'\nconfig-version: 2\nmacro-paths: [macros]\n",
    "macros/tools.sql": """
{% macro which_for_spark() %}{{ return(adapter.dispatch('which_for_spark', 'tools')()) }}{% endmacro %}
{% macro which_for_silt() %}{{ return(adapter.dispatch('which_for_silt', 'tools')()) }}{% endmacro %}
{% macro which_by_default() %}{{ return(adapter.dispatch('which_by_default', 'tools')()) }}{% endmacro %}
{% macro which_of_the_project() %}{{ return(adapter.dispatch('which_of_the_project', 'tools')()) }}{% endmacro %}

{% macro default__which_for_spark() %}'default'{% endmacro %}
{% macro spark__which_for_spark() %}'spark'{% endmacro %}

{% macro default__which_for_silt() %}'default'{% endmacro %}
{% macro spark__which_for_silt() %}'spark'{% endmacro %}
{% macro silt__which_for_silt() %}'silt'{% endmacro %}

{% macro default__which_by_default() %}'default'{% endmacro %}

{% macro which_for_databricks() %}{{ return(adapter.dispatch('which_for_databricks', 'tools')()) }}{% endmacro %}
{% macro which_without_default() %}{{ return(adapter.dispatch('which_without_default', 'tools')()) }}{% endmacro %}
{% macro which_by_project() %}{{ return(adapter.dispatch('which_by_project', 'tools')()) }}{% endmacro %}

{% macro default__which_for_databricks() %}'default'{% endmacro %}
{% macro databricks__which_for_databricks() %}'databricks'{% endmacro %}
{% macro databricks__which_for_spark() %}'databricks'{% endmacro %}
{% macro databricks__which_for_silt() %}'databricks'{% endmacro %}
{% macro databricks__which_without_default() %}'databricks'{% endmacro %}
{% macro databricks__which_by_project() %}'databricks'{% endmacro %}

{#-- The shape of `dbt_utils.deduplicate`: a natural join drops every row with a null. --#}
{% macro newest(relation, key, order) %}
  {{- return(adapter.dispatch('newest', 'tools')(relation, key, order)) -}}
{% endmacro %}
{% macro default__newest(relation, key, order) %}
  select distinct data.* from {{ relation }} as data natural join (
    select _inner.*, row_number() over (partition by {{ key }} order by {{ order }}) as rn from {{ relation }} as _inner
  ) as numbered where numbered.rn = 1
{% endmacro %}
{% macro databricks__newest(relation, key, order) %}
  select * from (
    select data.*, row_number() over (partition by {{ key }} order by {{ order }}) as rn from {{ relation }} as data
  ) where rn = 1
{% endmacro %}

{% macro default__which_of_the_project() %}'default'{% endmacro %}
{% macro spark__which_of_the_project() %}'spark'{% endmacro %}

{#-- As packages work with a temporary view, which they call by the name of a table. --#}
{% macro columns_of_a_temporary_view() %}
  {%- set view = this.incorporate(path={'schema': none}, type='table') -%}
  {%- do run_query('create or replace temporary view ' ~ view ~ ' as select 1 as a, 2 as b') -%}
  {%- set columns = adapter.get_columns_in_relation(this.include(database=false, schema=false)) -%}
  {%- set listed = load_relation(view) -%}
  {%- do drop_relation_if_exists(view) -%}
  {{ return([columns | map(attribute='name') | join(','), listed]) }}
{% endmacro %}

{% macro tables_like(pattern) %}
  {%- set found = run_query(
    "select table_name from " ~ target.database ~ ".information_schema.tables where table_schema = '" ~ target.schema
    ~ "' and table_name ilike '" ~ pattern ~ "' order by 1"
  ) -%}
  {{ return(found.columns[0].values() | join(',')) }}
{% endmacro %}
""",
    "models/tools_model.sql": "select {{ tools.which_for_spark() }} as found",
}

PROJECT_MACROS = """
{% macro silt__which_of_the_project() %}'project'{% endmacro %}

{% macro spark__dateadd(datepart, interval, from_date_or_timestamp) %}'overridden'{% endmacro %}

{% macro silt__type_boolean() %}int{% endmacro %}

{% macro default__which_by_project() %}'project'{% endmacro %}

{% macro which_without_namespace() %}{{ return(adapter.dispatch('which_without_namespace')()) }}{% endmacro %}
{% macro default__which_without_namespace() %}'default'{% endmacro %}
{% macro databricks__which_without_namespace() %}'databricks'{% endmacro %}

{#-- For dbt's own macros, a project names this adapter or Spark. --#}
{% macro databricks__type_string() %}binary{% endmacro %}
"""


class TestPackages:
    @pytest.fixture(scope="class")
    def packages(self, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
        folder = tmp_path_factory.mktemp("tools")
        write_files(folder, PACKAGE)
        return {"packages": [{"local": str(folder)}]}

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"own.sql": PROJECT_MACROS}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        asked = ("for_spark", "for_silt", "by_default", "of_the_project")
        columns = ", ".join(f"{{{{ tools.which_{name}() }}}} as {name}" for name in asked)
        others = ("for_databricks", "without_default", "by_project")
        of_databricks = ", ".join(f"{{{{ tools.which_{name}() }}}} as {name}" for name in others)
        of_databricks += ", {{ which_without_namespace() }} as without_namespace"
        return {
            "which.sql": f"{{{{ config(materialized='table') }}}} select {columns}",
            "listed.sql": "-- depends_on: {{ ref('which') }} {{ ref('tools_model') }}\n"
            "{{ config(materialized='table') }} "
            "select '{{ tools.tables_like(\"%H%\") if execute }}' as tables, '{{ target.type }}' as type",
            "passing.sql": "{{ config(materialized='table') }} "
            'select "{{ tools.columns_of_a_temporary_view() if execute }}" as found',
            "newest.sql": "{{ config(materialized='table') }} {{ tools.newest(ref('rows'), 'k', 'n') }}",
            "rows.sql": "select * from values (1, 2, 'b'), (1, 1, null), (2, 1, null) as t(k, n, v)",
            "of_databricks.sql": f"{{{{ config(materialized='table') }}}} select {of_databricks}",
            "dbts_own.sql": "{{ config(materialized='table') }} select cast(1 as {{ dbt.type_boolean() }}) as flag, "
            "cast(1 as {{ dbt.type_string() }}) as text, "
            "{{ dbt.dateadd('day', 1, \"date '2026-03-01'\") }} as later",
        }

    def test_the_most_specific_macro_is_used_and_the_projects_own_first(self, project: Any) -> None:
        run_dbt(["deps"])
        run_dbt(["build"])
        place = f"{project.database}.{project.test_schema}"
        assert project.run_sql(f"select * from {place}.which", fetch="one") == ("spark", "silt", "default", "project")
        assert project.run_sql(f"select found from {place}.tools_model", fetch="one") == ("spark",)

    def test_a_packages_macro_for_databricks_is_used_before_its_default(self, project: Any) -> None:
        place = f"{project.database}.{project.test_schema}"
        found = project.run_sql(f"select * from {place}.of_databricks", fetch="one")
        assert found == ("databricks", "databricks", "project", "databricks")

    def test_a_null_in_a_column_hides_no_row_that_a_package_chooses(self, project: Any) -> None:
        place = f"{project.database}.{project.test_schema}"
        rows = project.run_sql(f"select k, n, v from {place}.newest order by k", fetch="all")
        assert rows == [(1, 1, None), (2, 1, None)]

    def test_the_projects_macro_overrides_the_adapters_even_with_the_prefix_spark(self, project: Any) -> None:
        place = f"{project.database}.{project.test_schema}"
        found = project.run_sql(f"select typeof(flag), typeof(text), later from {place}.dbts_own", fetch="one")
        assert found == ("int", "string", "overridden")

    def test_a_package_creates_and_drops_a_temporary_view_with_the_name_of_a_table(self, project: Any) -> None:
        for _ in range(2):
            run_dbt(["run", "--select", "passing"])
            assert project.run_sql(f"select found from {project.test_schema}.passing", fetch="one") == (
                "['a,b', None]",
            )

    def test_a_package_finds_tables_in_the_information_schema(self, project: Any) -> None:
        place = f"{project.database}.{project.test_schema}"
        assert project.run_sql(f"select * from {place}.listed", fetch="one") == ("which", "silt")


class TestTargetType:
    """The effects of the profile's `target_type`."""

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, silt_target: dict[str, Any]) -> dict[str, Any]:
        return {**silt_target, "target_type": "spark"}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        enabled = {"by_the_project": {"+enabled": "{{ target.type in ('spark', 'databricks') }}"}}
        return {"models": {"test": enabled}}

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"own.sql": PACKAGE["macros/tools.sql"].replace("'tools'", "'test'")}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        properties = "models: [{name: by_the_project, config: {tags: '{{ target.type }}'}}]"
        macros = "'macro': which_for_silt(), 'fallback': which_for_databricks()"
        meta = f"{{{macros}, 'adapter': adapter.type(), 'shown': target.type}}"
        text = f"{{{{ config(meta={meta}) }}}} select 1 as n"
        return {"by_the_project.sql": text, "properties.yml": properties}

    def test_projects_and_packages_see_the_target_type_and_macros_are_found_as_before(self, project: Any) -> None:
        [line] = run_dbt(["list", "--output", "json", "--output-keys", "config"])
        config = json.loads(line)["config"]
        assert config["tags"] == ["spark"]
        assert config["meta"] == {"macro": "'silt'", "fallback": "'databricks'", "adapter": "silt", "shown": "spark"}


OF_DATABRICKS = """
{% macro which() %}{{ return(adapter.dispatch('which', 'test')()) }}{% endmacro %}
{% macro default__which() %}default{% endmacro %}
{% macro spark__which() %}spark{% endmacro %}
{% macro databricks__which() %}databricks{% endmacro %}
{% macro own() %}{{ return(adapter.dispatch('own', 'test')()) }}{% endmacro %}
{% macro default__own() %}default{% endmacro %}
{% macro databricks__own() %}databricks{% endmacro %}
{% macro silt__own() %}silt{% endmacro %}
{% macro old() %}{{ return(adapter.dispatch('old', 'test')()) }}{% endmacro %}
{% macro default__old() %}default{% endmacro %}
{% macro spark__old() %}spark{% endmacro %}
"""
CLUSTERED = """
{{ config(materialized='table', liquid_clustered_by=['n'], tblproperties={'delta.appendOnly': 'true'}) }}
-- {{ liquid_clustered_cols() }}
select 1 as n
"""


class TestMacrosForDatabricks:
    """The Databricks macros that packages for dbt-databricks find, and those that are missing."""

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, silt_target: dict[str, Any]) -> dict[str, Any]:
        return {**silt_target, "target_type": "databricks"}

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"own.sql": OF_DATABRICKS}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "which.sql": "select '{{ which() }}' as a, '{{ own() }}' as b, '{{ old() }}' as c, "
            "'{{ adapter.type() }}' as d, {{ 'sql/protocol' in target.http_path }} as is_cluster",
            "clustered.sql": CLUSTERED,
            "optimized.sql": "{{ config(materialized='table', post_hook='{{ optimize(this) }}') }} select 1 as n",
            "copied.sql": "{{ config(materialized='table', post_hook=\"copy into {{ this }} from '/x' "
            'fileformat = csv") }} select 1 as n',
        }

    def test_databricks_macros_are_found_after_this_adapters_and_before_those_for_spark(self, project: Any) -> None:
        run_dbt(["run", "--exclude", "copied"])
        found = project.run_sql(f"select * from {project.test_schema}.which", fetch="one")
        assert found == ("databricks", "silt", "spark", "silt", True)

    def test_an_unsupported_databricks_macro_is_refused_by_name(self, project: Any) -> None:
        [result] = run_dbt(["run", "--select", "copied"], expect_pass=False)
        assert "COPY INTO is a Databricks statement" in result.message
        _, output = run_dbt_and_capture(
            ["run-operation", "databricks_copy_into", "--args", "{target_table: t, source: /x, file_format: csv}"],
            expect_pass=False,
        )
        assert "`databricks_copy_into` loads files by COPY INTO" in output
