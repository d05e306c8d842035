"""Sources of dbt-spark, which may repeat their schema as their database."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import get_artifact, run_dbt
from dbt_common.exceptions import DbtRuntimeError

SOURCES = """
sources:
  - name: raw
    database: "{{ target.schema }}_raw"
    schema: "{{ target.schema }}_RAW"
    tables:
      - name: orders
        config: {freshness: {error_after: {count: 1, period: day}}}
        columns: [{name: id, data_tests: [not_null]}]
"""
MODEL = """
{% set raw = source('raw', 'orders') %}
{% set found = adapter.get_relation(raw.database, raw.schema, 'orders') %}
{% set columns = adapter.get_columns_in_relation(raw) %}
select *, '{{ found.type }}' as type, '{{ columns | map(attribute='name') | join }}' as name
from {{ api.Relation.create(database=raw.database, schema=raw.schema, identifier='orders') }}
"""


class TestASourceWhoseDatabaseIsItsSchema:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"sources.yml": SOURCES, "all_orders.sql": MODEL}

    @pytest.fixture(autouse=True, scope="class")
    def raw(self, project: Any) -> None:
        schema = f"{project.database}.{project.test_schema}_raw"
        project.run_sql(f"create schema if not exists {schema}")
        project.run_sql(f"create table if not exists {schema}.orders as select 7 as id")

    def test_is_read_from_the_profiles_database(self, project: Any) -> None:
        run_dbt(["build"])
        name = f"{project.database}.{project.test_schema}.all_orders"
        assert project.run_sql(f"select * from {name}", fetch="all") == [(7, "table", "id")]
        (freshness,) = run_dbt(["source", "freshness"])
        assert freshness.status == "pass"
        run_dbt(["docs", "generate"])
        (source,) = get_artifact("target", "catalog.json")["sources"].values()
        assert list(source["columns"]) == ["id"]

    def test_is_missing_if_the_schema_is(self, project: Any) -> None:
        with pytest.raises(DbtRuntimeError, match="nowhere: the database does not exist"):
            project.run_sql("select * from nowhere.nowhere.orders", fetch="all")
