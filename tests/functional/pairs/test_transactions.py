"""Transactions of a program beside the runs of a project that publishes after its tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.warehouse import Warehouse
from tests.cloud.servers import ObjectServer
from tests.files import write_files
from tests.functional.runs.test_publishing import Publishing, rows, silt, with_id

CONFIG = "{{ config(materialized='%s', reuse='unchanged') }} "
READ = "select id from {{ source('raw', 'raw_orders') }}"
PERSIST_DOCS = """
{% macro persist_docs(relation, model, for_relation=true, for_columns=true) %}
  {% do run_query('begin') %}
  {{ return(adapter.dispatch('persist_docs', 'dbt')(relation, model, for_relation, for_columns)) }}
{% endmacro %}
"""


@pytest.mark.connect(gate=True)
@pytest.mark.kept
class TestTransactionsBesideRuns(Publishing):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "copied.sql": CONFIG % "incremental" + READ + " where id > {{ var('above', 0) }}",
            "counted.sql": CONFIG % "table" + "select count(*) as n from {{ source('raw', 'raw_orders') }}",
            "sources.yml": "sources: [{name: raw, schema: '{{ target.schema }}', tables: [{name: raw_orders}]}]",
        }

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {}

    @pytest.fixture(scope="class")
    def tests(self) -> dict[str, str]:
        return {"small.sql": "select * from {{ ref('counted') }} where n > {{ var('most', 100) }}"}

    @pytest.fixture(scope="class")
    def program(
        self, spark: SparkSession, place: dict[str, Any], cloud: ObjectServer | None, project: Any
    ) -> Warehouse:
        """The warehouse in a session of its own, with a table of orders."""
        storage: dict[str, Any] = {} if cloud is None else {"storage": cloud.settings}
        warehouse = Warehouse(spark.newSession(), place["warehouse"], schema=project.test_schema, **storage)
        warehouse.sql("create table raw_orders as select 1L as id")
        return warehouse

    def test_a_transaction_of_an_input_builds_what_reads_it_if_it_is_committed(
        self, project: Any, program: Warehouse
    ) -> None:
        run_dbt(["build", *with_id("first")])
        with pytest.raises(ZeroDivisionError), program.transaction() as together:
            together.sql("insert into raw_orders values (2)")
            raise ZeroDivisionError
        assert reused("second") == {"copied": False, "counted": True}, "an append is reused after it has found nothing"
        assert reused("third") == {"copied": False, "counted": True}
        with program.transaction() as together:
            together.sql("insert into raw_orders values (2)")
            together.sql("delete from copied")
        assert reused("fourth") == {"copied": False, "counted": False}
        assert (rows(project, "copied"), rows(project, "counted")) == ([(1,), (2,)], [(2,)])

    def test_a_held_run_that_replaces_tables_replaces_what_a_transaction_has_added(
        self, project: Any, program: Warehouse
    ) -> None:
        program.sql("insert into raw_orders values (3)")
        run_dbt(["build", "--full-refresh", *with_id("held", most=0)], expect_pass=False)
        with program.transaction() as together:
            together.sql("insert into counted values (7)")
            together.sql("insert into copied values (7)")
        assert rows(project, "counted") == [(2,), (7,)]
        run_dbt(["build", "--full-refresh", *with_id("held")])
        assert (rows(project, "counted"), rows(project, "copied")) == ([(3,)], [(1,), (2,), (3,)])

    def test_a_repeated_run_does_not_bring_back_what_a_transaction_has_deleted(
        self, project: Any, program: Warehouse
    ) -> None:
        run_dbt(["run", "--select", "copied", "--full-refresh", *with_id("once")])
        with program.transaction() as together:
            together.sql("delete from copied where id = 1")
            together.sql("update counted set n = -1")
        run_dbt(["run", "--select", "copied", "--full-refresh", *with_id("once")])
        assert rows(project, "copied") == [(2,), (3,)]

    def test_a_rollback_is_refused_after_a_transaction(
        self, project: Any, program: Warehouse, capsys: pytest.CaptureFixture[str]
    ) -> None:
        run_dbt(["run", "--full-refresh", *with_id("wrong")])
        with program.transaction() as together:
            together.sql("insert into copied values (8)")
            together.sql("insert into counted values (8)")
        capsys.readouterr()
        assert silt(project, "rollback", "wrong", "--yes") == 1
        assert "other writers have changed 2 tables after it" in capsys.readouterr().err
        assert rows(project, "copied") == [(1,), (2,), (3,), (8,)]

    def test_a_clone_keeps_the_rows_of_a_run_that_is_rolled_back(self, project: Any, program: Warehouse) -> None:
        run_dbt(["run", "--full-refresh", *with_id("good")])
        run_dbt(["run", "--select", "copied", "--full-refresh", *with_id("bad", above=1)])
        with program.transaction() as together:
            together.sql("create table kept shallow clone copied")
        assert silt(project, "rollback", "bad", "--yes") == 0
        assert (rows(project, "copied"), rows(project, "kept")) == ([(1,), (2,), (3,)], [(2,), (3,)])

    def test_a_run_with_empty_is_rolled_back_as_its_message_says(self, project: Any) -> None:
        run_dbt(["run", "--full-refresh", *with_id("filled")])
        _, said = run_dbt_and_capture(["run", "--empty", "--full-refresh", *with_id("oops", silt_publish="at_once")])
        assert rows(project, "copied") == [] and "silt rollback oops" in " ".join(said.split())
        assert silt(project, "rollback", "oops", "--yes") == 0
        assert (rows(project, "copied"), rows(project, "counted")) == ([(1,), (2,), (3,)], [(3,)])

    def test_a_macro_that_overrides_one_of_dbts_cannot_begin_a_transaction(self, project: Any) -> None:
        write_files(Path(project.project_root, "macros"), {"persist_docs.sql": PERSIST_DOCS})
        results = run_dbt(["run", "--full-refresh", *with_id("begins")], expect_pass=False)
        assert all("units of work" in str(each.message) for each in results)


def reused(run_id: str) -> dict[str, bool]:
    """Which nodes a run has reused."""
    found = run_dbt(["run", *with_id(run_id)])
    return {each.node.name: "unchanged since" in str(each.message) for each in found}
