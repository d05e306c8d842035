"""Several databases: nodes, sources, schemas and documentation in each of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dbt.tests.util import get_artifact, get_connection, run_dbt, run_dbt_and_capture

MACROS = """
{% macro generate_database_name(custom_database_name=none, node=none) %}
  {%- set names = {'marts': 'Marts of ' ~ target.name} -%}
  {{- names.get(custom_database_name, custom_database_name or target.database) -}}
{% endmacro %}

{% macro note_places(database_schemas, schemas, graph, results) %}
  create or replace table {{ target.schema }}.places as
  {%- for database, schema in database_schemas %}
  select '{{ database }}' as database, '{{ schema }}' as schema, {{ schemas | length }} as schemas,
         {{ graph.nodes | length }} as nodes, {{ results | length }} as results
  {{ 'union all' if not loop.last }}
  {%- endfor %}
{% endmacro %}

{% macro make_place(database, schema) %}
  {% do adapter.create_schema(api.Relation.create(database=database, schema=schema)) %}
  {% do run_query('create table ' ~ api.Relation.create(database, schema, 'made here') ~ ' as select 1 as id') %}
  {{ print('PLACE ' ~ tojson({
      'schemas': list_schemas(database).columns[0].values() | list,
      'exists': adapter.check_schema_exists(database, schema),
      'counted': check_schema_exists(api.Relation.create(database).information_schema(), schema).rows[0][0] | int,
      'relations': list_relations_without_caching(api.Relation.create(database, schema)).rows[0].values() | list,
      'found': adapter.get_relation(database | upper, schema | upper, 'MADE HERE') | string,
  })) }}
{% endmacro %}

{% macro drop_place(database, schema) %}
  {% do adapter.drop_schema(api.Relation.create(database=database, schema=schema)) %}
{% endmacro %}
"""

SOURCES = """
sources:
  - name: landed
    database: raw
    schema: landing
    tables:
      - name: orders
        columns: [{name: id, data_tests: [not_null]}]
"""


class TestDatabases:
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, silt_target: dict[str, Any], tmp_path_factory: Any) -> dict[str, Any]:
        places = {"raw": str(tmp_path_factory.mktemp("raw")), "Marts of default": "marts"}
        return {**silt_target, "databases": places}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"on-run-end": ["{{ note_places(database_schemas, schemas, graph, results) }}"]}

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"macros.sql": MACROS}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        merged = "{{ config(materialized='incremental', unique_key='id', database='marts', alias='orders') }}"
        return {
            "sources.yml": SOURCES,
            "merged.sql": f"{merged} select id, amount from {{{{ source('landed', 'orders') }}}}",
            "seen.sql": "{{ config(alias='orders') }} select * from {{ ref('merged') }}",
        }

    def test_a_model_merges_a_source_of_another_database_into_a_third(self, project: Any) -> None:
        project.run_sql("create schema raw.landing; create table raw.landing.orders as select 1L as id, 10 as amount")
        run_dbt(["build"])
        project.run_sql("update raw.landing.orders set amount = 11; insert into raw.landing.orders values (2, 20)")
        run_dbt(["build"])
        expected = [(1, 11), (2, 20)]
        for place in (f"`marts of default`.{project.test_schema}.orders", f"silt.{project.test_schema}.orders"):
            assert project.run_sql(f"select id, amount from {place} order by id", fetch="all") == expected
        assert (project.project_root / "marts" / project.test_schema.lower() / "orders").isdir()

    def test_a_hook_at_the_end_of_the_run_lists_each_schema_once(self, project: Any) -> None:
        rows = project.run_sql("select * from {schema}.places order by database", fetch="all")
        schema = project.test_schema
        assert rows == [("Marts of default", schema, 1, 4, 3), ("silt", schema, 1, 4, 3)]

    def test_the_documentation_covers_all_databases(self, project: Any) -> None:
        run_dbt(["docs", "generate"])
        catalog = get_artifact(project.project_root, "target", "catalog.json")
        places = {
            name: (each["metadata"]["database"], each["metadata"]["type"])
            for name, each in {**catalog["nodes"], **catalog["sources"]}.items()
        }
        assert places == {
            "model.test.merged": ("marts of default", "table"),
            "model.test.seen": ("silt", "view"),
            "source.test.landed.orders": ("raw", "table"),
        }

    def test_schemas_of_another_database_are_created_listed_and_dropped(self, project: Any) -> None:
        arguments = json.dumps({"database": "raw", "schema": "An Extra One"})
        _, output = run_dbt_and_capture(["run-operation", "make_place", "--args", arguments])
        [line] = [line for line in output.splitlines() if line.startswith("PLACE ")]
        assert json.loads(line.removeprefix("PLACE ")) == {
            "schemas": ["an extra one", "landing"],
            "exists": True,
            "counted": 1,
            "relations": ["raw", "made here", "an extra one", "table"],
            "found": "`raw`.`an extra one`.`made here`",
        }
        run_dbt(["run-operation", "drop_place", "--args", arguments])
        with get_connection(project.adapter):
            assert project.adapter.list_schemas("raw") == ["landing"]

    def test_an_unattached_database_is_named_with_the_remedy(self, project: Any) -> None:
        arguments = json.dumps({"database": "nowhere", "schema": "any"})
        _, output = run_dbt_and_capture(["run-operation", "make_place", "--args", arguments], expect_pass=False)
        assert "nowhere: the database does not exist. Use one of marts of default, raw, silt, or attach it" in output
