"""The configs `liquid_clustered_by` and `cluster_by`, for every node that keeps a table."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.clustering import clustered_by

GROWING = """
{{{{ config(materialized='incremental', incremental_strategy='append', {more}) }}}}
select {{{{ var('id', 1) }}}} as id, named_struct('city', 'Delft') as place, 'x' as `a note`
"""
PYTHON = """
def model(dbt, session):
    dbt.config(materialized="table", cluster_by="id")
    return session.sql("select 1 as id")
"""
PARTED = """
{{ config(materialized='table', partition_by='day', cluster_by=['id']) }} select 1 as id, 'a' as day
"""
SNAPSHOT = """
{% snapshot kept %}{{ config(unique_key='id', strategy='check', check_cols='all', target_schema=schema,
liquid_clustered_by='dbt_valid_from') }} select * from {{ ref('growing') }} {% endsnapshot %}
"""


def snapshot_of(project: Any, name: str) -> Snapshot:
    place = RelationName(project.database, project.test_schema, name)
    return project.adapter.connections.catalog.table(place).snapshot()


def columns(project: Any, table: str) -> list[str]:
    snapshot = snapshot_of(project, table)
    return clustered_by(snapshot.schema, snapshot.domains)


class TestClusteredNodes:
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"seeds": {"+cluster_by": "id, name"}}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "growing.sql": GROWING.format(more="liquid_clustered_by=['ID', 'place.city']"),
            "loaded.py": PYTHON,
            "parted.sql": PARTED,
        }

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"kept.sql": SNAPSHOT}

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"sown.csv": "id,name\n1,a\n"}

    def test_every_kind_of_node_is_clustered_and_partitions_come_first(self, project: Any) -> None:
        _, output = run_dbt_and_capture(["build"])
        assert columns(project, "growing") == ["id", "place.city"]
        assert columns(project, "loaded") == ["id"]
        assert columns(project, "sown") == ["id", "name"]
        assert columns(project, "kept") == ["dbt_valid_from"]
        assert columns(project, "parted") == []
        [said] = [line for line in output.splitlines() if "`cluster_by` has no effect" in line]
        assert "a table with `partition_by` is not clustered (parted)" in said

    def test_a_changed_config_changes_the_table_of_an_incremental_model_without_a_rebuild(self, project: Any) -> None:
        write_file(GROWING.format(more="cluster_by='`a note`'"), "models", "growing.sql")
        before = snapshot_of(project, "growing").version
        run_dbt(["run", "--select", "growing", "--vars", "id: 2"])
        assert columns(project, "growing") == ["`a note`"]
        assert snapshot_of(project, "growing").version == before + 2
        assert project.run_sql(f"select count(*) from {project.test_schema}.growing", fetch="one")[0] == 2

    def test_an_empty_list_ends_the_clustering_and_no_config_keeps_it(self, project: Any) -> None:
        for more, expected in (("tags='x'", ["`a note`"]), ("liquid_clustered_by=[]", [])):
            write_file(GROWING.format(more=more), "models", "growing.sql")
            run_dbt(["run", "--select", "growing"])
            assert columns(project, "growing") == expected

    def test_columns_that_do_not_exist_fail_the_node_before_it_writes(self, project: Any) -> None:
        write_file(GROWING.format(more="liquid_clustered_by='nope'"), "models", "growing.sql")
        before = snapshot_of(project, "growing").version
        [result] = run_dbt(["run", "--select", "growing"], expect_pass=False)
        assert "CLUSTER BY names the column nope, which does not exist" in str(result.message)
        assert snapshot_of(project, "growing").version == before
