"""The handle of a connection: tags of its jobs, and cancelling."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.warehouse import Result, Warehouse
from dbt.adapters.silt.runs.response import SiltResponse
from dbt.adapters.silt.session.handle import SiltHandle
from dbt.adapters.silt.session.spark import SessionPool, SessionSettings


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
