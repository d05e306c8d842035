"""Statements of a text, and where a profile's warehouse is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import SparkSession

from dbt.adapters.silt.credentials import SiltCredentials
from dbt.adapters.silt.engine.kernel.errors import StatementSyntaxError
from dbt.adapters.silt.engine.warehouse import Result, Warehouse
from dbt.adapters.silt.runs.response import SiltResponse
from dbt.adapters.silt.session.handle import SiltHandle, environment_of, split_statements
from dbt.adapters.silt.session.spark import SessionPool, SessionSettings


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("select 1", ["select 1"]),
        ("select 1;", ["select 1"]),
        ('/* {"app": "dbt;"} */\nselect 1;\n-- ;\nselect \';\' as `a;b`;', ["select 1", "select ';' as `a;b`"]),
        ("set a = 1;\n\n;select 2 -- the end", ["set a = 1", "select 2"]),
        ("-- nothing\n;", []),
        ("", []),
        ("begin select 1; select 2; end", ["begin select 1; select 2; end"]),
    ],
)
def test_a_text_is_split_at_its_semicolons_and_nowhere_else(text: str, statements: list[str]) -> None:
    assert split_statements(text) == statements


def test_a_text_that_breaks_off_is_an_error() -> None:
    with pytest.raises(StatementSyntaxError):
        split_statements("select 'a; select 2")


def test_the_same_profile_has_one_environment_in_a_process(tmp_path: Path) -> None:
    first = environment_of(SiltCredentials(run_id="R1"), tmp_path)
    assert environment_of(SiltCredentials(run_id="R2"), tmp_path) is first
    assert environment_of(SiltCredentials(schema="other"), tmp_path) is not first
    assert environment_of(SiltCredentials(), tmp_path / "elsewhere") is not first


def test_names_are_answered_without_spark_and_without_making_anything(tmp_path: Path) -> None:
    environment = environment_of(SiltCredentials(databases={"raw": str(tmp_path / "raw")}), tmp_path)
    assert environment.catalog.databases() == ["raw", "silt"]
    assert environment.catalog.schemas("silt") == []
    assert list(tmp_path.iterdir()) == []


def test_every_databases_folder_is_relative_to_the_project(tmp_path: Path) -> None:
    environment = environment_of(SiltCredentials(warehouse="own", databases={"raw": "landing/raw"}), tmp_path)
    for database, folder in (("silt", "own"), ("raw", "landing/raw")):
        environment.catalog.create_schema(database, "main")
        assert (tmp_path / folder / "main").is_dir()


@pytest.mark.connect
def test_jobs_are_tagged_in_a_statement_and_no_longer_after_it(spark: SparkSession, tmp_path: Path) -> None:
    warehouse = Warehouse(spark, str(tmp_path))
    handle = SiltHandle(SessionPool(SessionSettings()), spark, warehouse, TaggedRunner(("model.shop.orders", "daily")))
    with handle.busy():
        assert spark.getTags() == {"model.shop.orders", "daily"}
    assert spark.getTags() == set()


def test_a_connection_that_is_cancelled_stops_its_jobs_and_runs_nothing_more(
    spark: SparkSession, tmp_path: Path
) -> None:
    session = spark.newSession()
    warehouse = Warehouse(session, str(tmp_path))
    handle = SiltHandle(SessionPool(SessionSettings()), session, warehouse, TaggedRunner(()))
    cursor = handle.cursor()
    cursor.execute("select count(*) from range(100000000000000) where hash(id) = 0")
    with ThreadPoolExecutor(1) as thread:
        endless = thread.submit(cursor.drain)
        handle.cancel()
        with pytest.raises(DbtRuntimeError, match="cancelled"):
            endless.result(timeout=60)
    with pytest.raises(DbtRuntimeError, match="cancelled"):
        handle.cursor().execute("select 1")


@dataclass(frozen=True)
class TaggedRunner:
    """A manager of connections whose statements have these tags."""

    tags: tuple[str, ...]

    def run(self, warehouse: Warehouse, statement: str) -> tuple[Result, SiltResponse]:
        return warehouse.execute(statement), SiltResponse("OK", code="OK")

    def without_comment(self, sql: str) -> str:
        return sql

    def job_tags(self) -> tuple[str, ...]:
        return self.tags
