"""Configs of projects for other warehouses: supported, reported once as ineffective, or refused."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot


def snapshot_of(project: Any, name: str) -> Snapshot:
    return project.adapter.connections.catalog.table(
        RelationName(project.database, project.test_schema, name)
    ).snapshot()


def value_of(project: Any, model: str) -> Any:
    return project.run_sql(f"select * from {project.database}.{project.test_schema}.{model}", fetch="one")[0]


class TestConfigsOfOtherWarehouses:
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {
            "models": {
                "+file_format": "delta",
                "+location_root": "/mnt/lake",
                "+transient": False,
                "+unique_tmp_table_suffix": True,
            },
            "snapshots": {"+file_format": "delta", "+cluster_by": "lower(id)", "+target_database": "silt"},
            "seeds": {"+file_format": "parquet"},
        }

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "first.sql": "{{ config(materialized='table', partition_by='part', zorder='id', "
            "tblproperties={'delta.appendOnly': 'true', 'team': 'sales'}) }} select 1 as id, 'a' as part",
            "second.sql": "{{ config(materialized='table', auto_liquid_cluster=true, buckets=4, clustered_by='id', "
            "options={'compression': 'gzip'}) }} select 1 as id",
            "third.sql": "{{ config(databricks_tags={'a': 'b'}, indexes=[{'columns': ['id']}]) }} select 1 as id",
        }

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {
            "kept.sql": "{% snapshot kept %}{{ config(unique_key='id', strategy='check', check_cols='all', "
            "target_schema=schema) }} select 1 as id {% endsnapshot %}"
        }

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"sown.csv": "id\n1\n"}

    def test_each_ineffective_config_is_reported_once_with_its_models(self, project: Any) -> None:
        _, output = run_dbt_and_capture(["build"])
        said = [line for line in output.splitlines() if "has no effect" in line]
        for name in (
            "location_root",
            "zorder",
            "auto_liquid_cluster",
            "buckets",
            "clustered_by",
            "options",
            "databricks_tags",
            "indexes",
            "file_format",
            "cluster_by",
        ):
            assert len([line for line in said if f"The config `{name}` has" in line]) == 1, name
        (place,) = [line for line in said if "`location_root`" in line]
        assert "the warehouse chooses the folder of a table" in place
        assert all(model in place for model in ("first", "second", "third"))
        assert "silt_optimize(this, zorder_by=[...])" in next(line for line in said if "`zorder`" in line)
        assert "(sown)" in next(line for line in said if "`file_format`" in line)
        assert not any(name in line for line in said for name in ("`transient`", "unique_tmp", "`tblproperties` has"))

    def test_supported_configs_take_effect(self, project: Any) -> None:
        metadata = snapshot_of(project, "first").metadata
        assert metadata.partition_columns == ("part",)
        assert metadata.configuration["delta.appendOnly"] == "true"
        assert metadata.configuration["team"] == "sales"

    def test_the_warnings_are_errors_with_warn_error(self, project: Any) -> None:
        _, output = run_dbt_and_capture(["--warn-error", "run", "--select", "third"], expect_pass=False)
        assert "has no effect" in output


class TestConfigsThatCannotBe:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "granular.sql": "{{ config(materialized='incremental', incremental_strategy='insert_overwrite', "
            "partition_by=['bucket(4, at)']) }} select 1 as at",
            "unknown_property.sql": "{{ config(materialized='table', "
            "tblproperties={'delta.apendOnly': 'true'}) }} select 1 as id",
            "protected.sql": "{{ config(pre_hook='set spark.sql.files.ignoreMissingFiles = true') }} select 1 as id",
        }

    def test_each_invalid_config_fails_with_its_reason_before_anything_is_created(self, project: Any) -> None:
        results = run_dbt(["run"], expect_pass=False)
        messages = {each.node.name: each.message for each in results}
        assert "cannot determine the partitions of `partition_by: bucket(4, at)`" in messages["granular"]
        assert "the table property `delta.apendOnly` does not exist" in messages["unknown_property"]
        assert "rows of a missing file would be lost" in messages["protected"]
        assert project.run_sql("show tables", fetch="all") == []


class TestSettingsOfOneModel:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        zone = "select current_timezone() as zone"
        return {
            "far.sql": "{{ config(materialized='table', pre_hook='set spark.sql.session.timeZone = Asia/Tokyo') }} "
            + zone,
            "near.sql": "-- depends_on: {{ ref('far') }}\n{{ config(materialized='table') }} " + zone,
            "lenient.sql": "{{ config(materialized='table', pre_hook=['set spark.sql.ansi.enabled = false']) }} "
            "select cast('x' as int) as id",
        }

    def test_a_setting_in_a_hook_applies_to_its_model_only(self, project: Any) -> None:
        run_dbt(["run", "--threads", "1"])
        assert value_of(project, "far") == "Asia/Tokyo"
        assert value_of(project, "near") == "UTC"
        assert value_of(project, "lenient") is None
