"""Relations that a project's own statements create or drop before the node of that name is built."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt

QUERY = "select 2L as id, 'model' as origin"
MADE = "create table if not exists {{ this }} as select 1L as id, 'hook' as origin"

SNAPSHOTS = """
snapshots:
  - name: kept_history
    relation: ref('plain')
    config:
      unique_key: id
      strategy: check
      check_cols: [origin]
      pre_hook: >
        create table if not exists {{ this }} (id bigint, origin string, dbt_scd_id string, dbt_updated_at timestamp,
        dbt_valid_from timestamp, dbt_valid_to timestamp)
"""


def model(config: str, hook: str = "") -> str:
    return f'{{{{ config({config}, pre_hook="{hook}") }}}}\n{QUERY}'


@pytest.fixture(scope="class")
def all_rows(project: Any) -> Any:
    def rows(name: str) -> Any:
        return project.run_sql(f"select id, origin from {project.test_schema}.{name} order by all", fetch="all")

    return rows


class TestRelationsOfPreHooks:
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"sown.csv": "id,origin\n2,model\n"}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"seeds": {"+pre-hook": MADE}}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "plain.sql": model("materialized='table'"),
            "built.sql": model("materialized='table'", MADE),
            "seen.sql": model("materialized='view'", MADE),
            "turned.sql": model("materialized='table'", "create or replace view {{ this }} as select 1 as id"),
            "again.sql": model("materialized='incremental'", "drop table if exists {{ this }}"),
            "renamed.sql": model("materialized='incremental'", "alter table {{ ref('plain') }} rename to {{ this }}"),
            "merged.sql": model("materialized='incremental', unique_key='id'", MADE),
            "appended.sql": model("materialized='incremental'", MADE),
            "snapshots.yml": SNAPSHOTS,
        }

    def test_every_materialization_notices_the_relation_that_its_pre_hook_created_or_dropped(
        self, all_rows: Any
    ) -> None:
        run_dbt(["build", "--exclude", "renamed"])
        run_dbt(["build", "--exclude", "renamed", "seen", "turned"])
        for name in ("built", "seen", "turned", "again", "sown", "kept_history"):
            assert all_rows(name) == [(2, "model")], name

    def test_an_incremental_model_appends_to_a_table_that_its_pre_hook_created(self, all_rows: Any) -> None:
        assert all_rows("merged") == [(1, "hook"), (2, "model")]
        assert all_rows("appended") == [(1, "hook"), (2, "model"), (2, "model")]

    def test_a_renamed_table_is_found_by_its_new_name(self, all_rows: Any) -> None:
        run_dbt(["run", "--select", "renamed"])
        assert all_rows("renamed") == [(2, "model"), (2, "model")]


class TestRelationsOfOtherStatements:
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        made = "create table if not exists {{ target.schema }}.started as select 1L as id, 'hook' as origin"
        return {"on-run-start": made}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        ask = "{% if execute %}{% do run_query('create table if not exists ' ~ this ~ ' (id bigint)') %}{% endif %}\n"
        return {
            "started.sql": model("materialized='table'"),
            "asked.sql": ask + model("materialized='table'"),
            "stated.sql": "{% call statement('made') %}create table {{ this }} (id int){% endcall %}\n"
            + model("materialized='table'"),
        }

    def test_a_node_replaces_a_relation_that_the_project_created_earlier(self, all_rows: Any) -> None:
        run_dbt(["run"])
        for name in ("started", "asked", "stated"):
            assert all_rows(name) == [(2, "model")], name
