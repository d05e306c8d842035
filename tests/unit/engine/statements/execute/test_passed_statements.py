"""Statements without an effect on tables of a warehouse, and statements that Spark runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt.adapters.silt.engine.kernel.errors import FunctionNotFoundError, UnsupportedStatementError
from tests.unit.engine.house import House


@pytest.fixture
def orders(house: House) -> House:
    house.sql("create table orders as select * from values (1, 'a'), (2, 'b') as t(id, name)")
    return house


@pytest.mark.parametrize(
    "statement",
    ["refresh table orders", "analyze table orders compute statistics", "analyze tables compute statistics"],
)
def test_statistics_and_files_are_always_current(orders: House, statement: str) -> None:
    version = orders.log("orders").snapshot().version
    assert orders.rows(statement) == []
    assert orders.log("orders").snapshot().version == version


@pytest.mark.parametrize("statement", ["cache table orders", "uncache table orders"])
def test_the_cache_is_refused_for_a_table_of_the_warehouse(orders: House, statement: str) -> None:
    with pytest.raises(UnsupportedStatementError, match=r"orders.*Leave it out"):
        orders.sql(statement)


def test_a_table_of_spark_is_cached_and_analyzed_by_spark(house: House) -> None:
    house.sql("create temporary view lent as select 1 as id")
    for statement in ("cache table lent", "refresh table lent", "uncache table lent", "clear cache"):
        house.sql(statement)
    assert house.rows("select * from lent") == [(1,)]


def test_a_query_is_described_and_explained_with_the_tables_of_the_warehouse(orders: House) -> None:
    assert [row[:2] for row in orders.rows("describe query select id, name from orders")] == [
        ("id", "int"),
        ("name", "string"),
    ]
    assert "LocalTableScan" not in str(orders.rows("explain select * from orders where id = 1"))
    with pytest.raises(UnsupportedStatementError, match="EXPLAIN"):
        orders.sql("explain delete from orders")


def test_a_query_of_the_warehouse_is_written_to_a_folder_that_spark_reads(orders: House, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    orders.sql(f"insert overwrite directory '{folder}' using parquet select id from orders where id = 2")
    orders.sql(f"create temporary view written using parquet options (path '{folder}')")
    assert orders.rows("select * from written") == [(2,)]


def test_a_schema_is_described(orders: House) -> None:
    assert ("Namespace Name", "main") in orders.rows("describe schema main")


def test_a_setting_that_is_reset_has_its_default_again(house: House) -> None:
    house.sql("set spark.sql.shuffle.partitions = 7")
    house.sql("reset spark.sql.shuffle.partitions")
    assert ("spark.sql.shuffle.partitions", "7") not in house.rows("set spark.sql.shuffle.partitions")


def test_a_procedure_is_called_by_spark_which_has_none(house: House) -> None:
    with pytest.raises(FunctionNotFoundError, match=r"system.*nothing"):
        house.sql("call system.nothing(1)")
