"""Queries answered from the log have Spark's rows, names and types, and open no data file."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.warehouse import Warehouse

ROWS = """
select id, cast(id as int) as small, date_add(date '2020-01-01', cast(id as int)) as day,
  timestamp_micros(1600000000123456 + id * 1000003) as at,
  cast(timestamp_micros(1600000000123456 + id * 1000003) as timestamp_ntz) as wall,
  cast(id * 1.5 as decimal(20, 3)) as price, concat('k', id) as name, if(id < 50, 'a', 'b') as part
from range(100)
union all select -5, null, null, null, null, null, null, 'c'
"""


@pytest.fixture(scope="module")
def orders(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A warehouse with a table `orders`, and a temporary view `plain` with the same rows."""
    found = Warehouse(spark, str(tmp_path_factory.mktemp("warehouse")))
    found.sql(f"create table orders partitioned by (part) as {ROWS}")
    found.sql("create view newest as select max(id) as id, count(*) as n from orders")
    spark.sql(ROWS).createOrReplaceTempView("plain")
    return found


@pytest.mark.parametrize(
    "query",
    [
        "select count(*) from orders",
        "select count(*) as n, max(id), min(id), MAX(o.at), min(at) first_at from orders as o",
        "select min(day), max(day), min(wall), max(wall), min(price), max(price), min(name), max(small) from orders",
        "select max(part), min(part) from orders",
        "select count(*) as n, max(id) from orders limit 5",
        "select count(*), max(id) from orders where part = 'a'",
        "select count(*) from orders where part < 'c' and id >= 0",
        "select max(at) from orders where part = 'c'",
        "select max(id), count(1) from orders where part = 'nowhere'",
        "select coalesce(max(id), 0) + 1 as next_id from orders",
        "select * from (select max(price) from orders) as q",
        "with latest as (select max(at) as at from orders) select at from latest",
    ],
)
def test_the_log_answers_as_spark_does_and_no_file_is_opened(orders: Warehouse, query: str) -> None:
    answered, scanned = orders.sql(query), orders.sql(query.replace("orders", "plain"))
    assert answered.inputFiles() == []
    assert (answered.dtypes, answered.collect()) == (scanned.dtypes, scanned.collect())


@pytest.mark.parametrize(
    ("condition", "files"),
    [
        ("at >= (select max(at) from orders)", 1),
        ("at > (select coalesce(max(at), timestamp '1900-01-01') from orders)", 1),
        ("at >= (select max(at) - interval 2 seconds from orders)", 1),
        ("day > (select date_sub(max(day), 3) from orders)", 1),
        ("id between (select max(id) - 2 from orders) and (select max(id) from orders)", 1),
        ("id <= (select min(id) from orders)", 1),
        ("price > (select max(price) / 2 from orders)", 3),
    ],
)
def test_a_condition_on_an_answered_subquery_prunes_files(orders: Warehouse, condition: str, files: int) -> None:
    query = f"select id from orders where {condition}"
    found = orders.sql(query)
    assert len(found.inputFiles()) <= files
    assert sorted(found.collect()) == sorted(orders.sql(query.replace("orders", "plain")).collect())


def test_a_view_of_an_answer_is_answered(orders: Warehouse) -> None:
    found = orders.sql("select * from newest")
    assert (found.inputFiles(), [tuple(row) for row in found.collect()]) == ([], [(99, 101)])


def test_an_older_version_is_answered_with_its_own_values(orders: Warehouse) -> None:
    orders.sql("create table counters as select 1 as n")
    orders.sql("insert into counters values (2)")
    orders.sql("delete from counters where n = 1")
    versions = [orders.sql(f"select count(*), max(n) from counters version as of {n}").first() for n in range(3)]
    assert [tuple(row or ()) for row in versions] == [(1, 1), (2, 2), (1, 2)]


def test_an_insert_that_uses_an_answer_is_not_a_blind_append(orders: Warehouse) -> None:
    orders.sql("create table numbered as select 1 as n")
    orders.sql("insert into numbered select max(n) + 1 from numbered")
    latest = orders.sql("describe history numbered").first()
    assert latest is not None and latest["isBlindAppend"] is False
    assert orders.sql("select max(n) from numbered").collect() == [(2,)]


@pytest.mark.parametrize(
    "query",
    [
        "select count(*) as n from orders limit 0",
        "select max(id) as n from orders limit 1 offset 1",
        "select 7L as n union all select count(*) from orders limit 1",
        "select n from (select count(*) as n from orders limit 0) q",
        "select max(id) as n from orders where id > (select max(id) from orders limit 0)",
    ],
)
def test_a_limit_that_may_leave_no_row_is_left_to_spark(orders: Warehouse, query: str) -> None:
    assert orders.sql(query).collect() == orders.sql(query.replace("orders", "plain")).collect()


def test_a_nested_answer_does_not_change_the_rest_of_the_query(orders: Warehouse) -> None:
    orders.sql("create table nobody (id bigint)")
    query = (
        "select count(*) as n from nobody where id = (select max(id) + 1000000000 from orders where part = 'a')"
        " union all select n from (select 7L as n) as seven"
    )
    assert [row.n for row in orders.sql(query).collect()] == [0, 7]
