"""`dbt clone` of each kind of node, into another schema and another warehouse, and later builds of the clones."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import get_connection, run_dbt

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot

EVENTS = """
{{ config(materialized='incremental', unique_key='id', persist_docs={'relation': true}) }}
select id, cast(id * 10 as bigint) as amount from range({{ var('first', 0) }}, {{ var('first', 0) }} + 3)
"""
PYTHON = """
def model(dbt, session):
    dbt.config(materialized='table')
    return session.range(2)
"""
SNAPSHOT = """
{% snapshot history %}
{{ config(unique_key='id', strategy='check', check_cols='all') }}
select * from {{ ref('events') }}
{% endsnapshot %}
"""
TABLES = ("events", "from_python", "history", "rows")
CLONE = ("clone", "--target", "dev", "--state", "state")
WAREHOUSE_OF_DEV = "dev"


def by_name(results: Any) -> dict[str, Any]:
    return {result.node.name: result for result in results}


@pytest.mark.manifest
class TestClone:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "events.sql": EVENTS,
            "from_python.py": PYTHON,
            "over_events.sql": "{{ config(materialized='view') }} select count(*) as n from {{ ref('folded') }}",
            "folded.sql": "{{ config(materialized='ephemeral') }} select * from {{ ref('events') }}",
            "docs.yml": "models: [{name: events, description: What took place}]",
        }

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"rows.csv": "id,name\n1,one\n2,two\n"}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"history.sql": SNAPSHOT}

    @pytest.fixture(scope="class")
    def profiles_config_update(
        self, dbt_profile_target: dict[str, Any], unique_schema: str, tmp_path_factory: pytest.TempPathFactory
    ) -> dict[str, Any]:
        """Development has a separate warehouse, and attaches the warehouse of production as a database."""
        production = {**deepcopy(dbt_profile_target), "schema": unique_schema}
        development = {
            **deepcopy(production),
            "database": WAREHOUSE_OF_DEV,
            "warehouse": str(tmp_path_factory.mktemp(WAREHOUSE_OF_DEV)),
            "databases": {"silt": production["warehouse"]},
        }
        return {"test": {"outputs": {"prod": production, "dev": development}, "target": "prod"}}

    @pytest.fixture(scope="class")
    def development(self, profiles_config_update: Mapping[str, Any]) -> Path:
        return Path(profiles_config_update["test"]["outputs"]["dev"]["warehouse"])

    def rows(self, project: Any, sql: str) -> list[tuple[Any, ...]]:
        """Returns the rows of a query in development."""
        shown = run_dbt(["show", "--target", "dev", "--limit", "100", "--inline", sql])
        return [tuple(row.values()) for row in shown.results[0].agate_table.rows]

    def snapshot(self, project: Any, database: str, name: str) -> Snapshot:
        with get_connection(project.adapter):
            catalog = project.adapter.connections.catalog
            return catalog.table(RelationName(database, project.test_schema, name)).snapshot()

    def test_a_clone_is_a_separate_table_that_starts_with_the_content_of_its_source(
        self, project: Any, development: Path
    ) -> None:
        run_dbt(["build"])
        shutil.copytree(Path(project.project_root) / "target", Path(project.project_root) / "state")

        cloned = by_name(run_dbt([*CLONE, "--vars", "silt_run_id: C1"]))
        assert set(cloned) == {*TABLES, "over_events"}
        for name in TABLES:
            response = cloned[name].adapter_response
            assert (response["operation"], response["table_version"]) == ("CLONE", 0), name
            assert not list((development / project.test_schema / name).rglob("*.parquet")), "the files are the source's"
            assert response["app_id"].endswith("/C1/clone")

        again = by_name(run_dbt([*CLONE, "--vars", "silt_run_id: C1"]))
        assert all(again[name].adapter_response["skipped"] for name in TABLES)
        another = by_name(run_dbt([*CLONE]))
        assert {result.message for result in another.values()} == {"No-op"}

        assert self.rows(project, "select count(*) from {{ ref('events') }}") == [(3,)]
        self._check_that_the_run_id_does_not_skip_the_build(project)
        self._check_a_full_refresh(project)

    def _check_that_the_run_id_does_not_skip_the_build(self, project: Any) -> None:
        """The clone has neither the units of work of its source, nor its own creation as a unit."""
        more = ["run", "--target", "dev", "--select", "events", "--vars", "{silt_run_id: C1, first: 2}"]
        [built] = run_dbt(more)
        assert not built.adapter_response.get("skipped")
        ids = "select id from {{ ref('events') }} order by id"
        assert self.rows(project, ids) == [(0,), (1,), (2,), (3,), (4,)]
        assert self.rows(project, "select n from {{ ref('over_events') }}") == [(3,)], "a view of production's table"
        production = self.rows(project, f"select count(*) from silt.{project.test_schema}.events")
        assert production == [(3,)]

    def _check_a_full_refresh(self, project: Any) -> None:
        again = by_name(run_dbt([*CLONE, "--full-refresh", "--select", "events", "history"]))
        assert again["events"].adapter_response["operation"] == "CLONE"
        assert self.rows(project, "select count(*) from {{ ref('events') }}") == [(3,)]
        run_dbt(["snapshot", "--target", "dev"])
        assert self.rows(project, "select count(*), count(dbt_valid_to) from {{ ref('history') }}") == [(3, 0)]


@pytest.mark.manifest
class TestCloneOverAView:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"one.sql": "{{ config(materialized=var('kind', 'table')) }} select 1 as id"}

    @pytest.fixture(scope="class")
    def profiles_config_update(self, dbt_profile_target: dict[str, Any], unique_schema: str) -> dict[str, Any]:
        target = {**deepcopy(dbt_profile_target), "schema": unique_schema}
        other = {**deepcopy(target), "schema": f"{unique_schema}_dev"}
        return {"test": {"outputs": {"prod": target, "dev": other}, "target": "prod"}}

    def test_a_full_refresh_replaces_a_view_by_a_table_and_a_table_by_a_view(self, project: Any) -> None:
        run_dbt(["run"])
        shutil.copytree(Path(project.project_root) / "target", Path(project.project_root) / "state")
        run_dbt(["run", "--target", "dev", "--vars", "kind: view"])
        [kept] = run_dbt([*CLONE])
        assert kept.message == "No-op"
        [cloned] = run_dbt([*CLONE, "--full-refresh"])
        assert cloned.adapter_response["operation"] == "CLONE"

        run_dbt(["run", "--vars", "kind: view"])
        run_dbt([*CLONE, "--full-refresh"])
        schema = f"{project.test_schema}_dev"
        with get_connection(project.adapter):
            [relation] = project.adapter.list_relations_without_caching(
                project.adapter.Relation.create(project.database, schema)
            )
        assert relation.is_view
