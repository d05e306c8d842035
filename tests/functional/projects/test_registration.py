"""`catalog: hive`: the tables of a run are registered in the metastore; a failure of the metastore causes only a
warning.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file
from pyspark.sql import SparkSession

from dbt.adapters.silt.cli.main import main
from dbt.adapters.silt.session.registration import HiveMetastore, RegisteredTable
from tests import derby


@pytest.fixture(scope="class")
def dbt_profile_target(silt_target: dict[str, Any], connect_server: str | None, keep_alive: Any) -> dict[str, Any]:
    if connect_server or keep_alive:
        pytest.skip("the driver is in another process")
    return {**silt_target, "catalog": "hive"}


class Registered:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "orders.sql": "{{ config(materialized='incremental') }} select 1 as id",
            "paid.sql": "select * from {{ ref('orders') }}",
        }

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"kinds.csv": "id\n1\n"}

    @pytest.fixture(scope="class", autouse=True)
    def hadoop(self, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
        with derby.hadoop_settings(spark, self.settings(tmp_path_factory.mktemp("derby"))):
            yield

    def settings(self, folder: Path) -> dict[str, str]:
        return derby.settings(folder)


class TestTablesOfARun(Registered):
    def test_tables_are_registered_by_name_until_they_are_dropped(self, project: Any, spark: SparkSession) -> None:
        metastore = HiveMetastore(spark)

        def known() -> dict[str, RegisteredTable]:
            return {each.name: each for each in metastore.tables(project.test_schema)}

        run_dbt(["build"])
        assert sorted(known()) == ["kinds", "orders"]
        catalog = project.adapter.connections.catalog
        for name, table in known().items():
            found = catalog.find(
                project.adapter.Relation.create("silt", project.test_schema, name).relation_name("silt")
            )
            root = catalog.table(found.name).store.root
            assert table.location == metastore.location_of(root)

        write_file("{{ config(materialized='view') }} select 2 as id", project.project_root, "models", "orders.sql")
        run_dbt(["run", "--full-refresh", "--select", "orders"])
        assert sorted(known()) == ["kinds"]

        metastore.remove(project.test_schema, "kinds")
        _, output = run_dbt_and_capture(["run-operation", "silt_register"])
        assert f"silt.{project.test_schema}.kinds: registered" in output
        assert sorted(known()) == ["kinds"]

    def test_a_name_registered_by_another_program_is_not_changed(self, project: Any, spark: SparkSession) -> None:
        metastore = HiveMetastore(spark)
        theirs = RegisteredTable(project.test_schema, "orders", "file:/theirs", None)
        metastore.remove(project.test_schema, "orders")
        metastore.add(theirs)
        write_file("{{ config(materialized='table') }} select 1 as id", project.project_root, "models", "orders.sql")
        (result,), output = run_dbt_and_capture(["run", "--select", "orders"])
        assert str(result.status) == "success"
        assert "not registered: another table has the name (file:/theirs). Drop that entry" in output
        found = metastore.find(project.test_schema, "orders")
        assert found is not None and found.location == theirs.location


class TestTablesOfAPublishedRun(Registered):
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        return {**dbt_profile_target, "publish": "after_tests"}

    @pytest.fixture(scope="class")
    def tests(self) -> dict[str, str]:
        return {"no_seven.sql": "select * from {{ ref('orders') }} where id = 7"}

    def test_tables_are_registered_when_they_are_published(self, project: Any, spark: SparkSession) -> None:
        metastore = HiveMetastore(spark)

        def known() -> list[str]:
            return sorted(each.name for each in metastore.tables(project.test_schema))

        orders = "{{ config(materialized='table') }} select 7 as id"
        write_file(orders, project.project_root, "models", "orders.sql")
        run_dbt(["build", "--vars", "silt_run_id: monday"], expect_pass=False)
        assert known() == []
        write_file(orders.replace("7", "8"), project.project_root, "models", "orders.sql")
        run_dbt(["build", "--vars", "silt_run_id: monday"])
        assert known() == ["kinds", "orders"]

        write_file("select 9 as id", project.project_root, "models", "orders.sql")
        run_dbt(["build", "--full-refresh"])
        assert known() == ["kinds"]

    def test_a_run_that_is_published_later_needs_the_operation(
        self, project: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write_file("select 7 as id", project.project_root, "models", "orders.sql")
        run_dbt(["build", "--vars", "silt_run_id: tuesday"], expect_pass=False)
        folders = ("--project-dir", str(project.project_root), "--profiles-dir", str(project.profiles_dir))
        assert main(["publish", "tuesday", *folders]) == 0
        assert "run `dbt run-operation silt_register`" in capsys.readouterr().err


class TestAMetastoreThatIsNotThere(Registered):
    def settings(self, folder: Path) -> dict[str, str]:
        nowhere = {"javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/nothing"}
        return derby.settings(folder) | nowhere

    def test_without_the_metastore_tables_are_built_and_one_warning_reports_the_missing_registration(
        self, project: Any
    ) -> None:
        results, output = run_dbt_and_capture(["build"])
        assert {str(result.status) for result in results} == {"success"}
        warning = "is committed, but its entry in the metastore is not updated; the same is true of the other tables"
        assert output.count(warning) == 1
        assert "[SILT_REGISTRATION] the Hive metastore could not be opened" in output
        _, output = run_dbt_and_capture(["run-operation", "silt_register"], expect_pass=False)
        assert "[SILT_REGISTRATION]" in output


class TestNoCatalog:
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, silt_target: dict[str, Any]) -> dict[str, Any]:
        return silt_target

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"orders.sql": "select 1 as id"}

    def test_without_a_catalog_the_operation_names_the_missing_setting(self, project: Any) -> None:
        _, output = run_dbt_and_capture(["run-operation", "silt_register"], expect_pass=False)
        assert "set `catalog: hive`" in output
