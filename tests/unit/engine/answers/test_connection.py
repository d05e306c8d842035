"""Rows that a connection gets without Spark equal the rows that it fetches from Spark: names, types and values."""

from __future__ import annotations

from collections.abc import Iterator

import agate
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine import Warehouse
from dbt.adapters.silt.engine.answers.connection import AnswersWithoutSpark, answers_of
from dbt.adapters.silt.engine.answers.sessions import UNKNOWN_ZONE
from dbt.adapters.silt.runs.agate_tables import to_agate
from dbt.adapters.silt.runs.fetch import fetchable

PLAIN = (
    *("b tinyint", "sh smallint", "i int", "l bigint", "f float", "d double", "n decimal(38, 10)", "flag boolean"),
    *("s string", "v varchar(9)", "bin binary", "day date", "ntz timestamp_ntz", "a array<decimal(5, 2)>"),
    *("m map<int, string>", "st struct<x: int, y: array<date>>"),
)
VALUES = (
    "1, 2, 3, 4, float('NaN'), 0.1D, 1.5BD, true, 'a''b', 'v', X'00FF', date'1500-03-01', "
    "timestamp_ntz'0001-01-01 00:00:00.000001', array(1.25BD, null), map(1, 'x'), named_struct('x', 1, 'y', array())",
    "-128, -32768, -2147483648, -9223372036854775808, -0.0F, double('Infinity'), -12345678901234567890.0123456789BD, "
    "false, '', '', X'', date'9999-12-31', timestamp_ntz'2024-03-10 02:30:00', array(), map(), null",
    ", ".join(["null"] * len(PLAIN)),
)
INSTANTS = "ts timestamp, nested array<struct<at: timestamp, of: map<string, timestamp>>>"


@pytest.fixture(scope="module")
def warehouse(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warehouse]:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    house = Warehouse(session, str(tmp_path_factory.mktemp("house")))
    house.sql(f"create table plain ({', '.join(PLAIN)})")
    for values in VALUES:
        house.sql(f"insert into plain values ({values})")
    house.sql(f"create table instants ({INSTANTS})")
    house.sql("insert into instants values (timestamp'2024-03-10 10:30:00.123456Z', null), (null, array())")
    house.sql(
        "insert into instants values (timestamp'1700-01-01 00:00:00Z', "
        "array(named_struct('at', timestamp'9999-12-31 23:59:59Z', 'of', map('k', timestamp'1970-01-01 00:00:00Z'))))"
    )
    house.sql("create table others (fixed char(3), kind variant)")
    house.sql("insert into others select 'a', parse_json('1')")
    house.sql("create view seen as select * from plain")
    yield house


def answers(warehouse: Warehouse, zone: str = "UTC") -> AnswersWithoutSpark:
    return AnswersWithoutSpark(warehouse.catalog, "silt", "main", zone)


def without_spark(warehouse: Warehouse, text: str, most: int | None = None, zone: str = "UTC") -> pa.Table | None:
    found = answers(warehouse, zone)
    query = found.prepared(text)
    return None if query is None else found.rows(query, most)


def shown(rows: pa.Table) -> tuple[object, ...]:
    table: agate.Table = to_agate(rows)
    return table.column_names, [type(each) for each in table.column_types], sorted(map(repr, map(tuple, table.rows)))


@pytest.mark.parametrize(
    "text",
    [
        "select * from plain",
        *(f"select {column.split()[0]} as `a b` from main.plain" for column in PLAIN),
        "select L, S from `silt`.`main`.`plain` where l > 0 or l is null",
        "select count(*) from plain",
        "select count(*), min(i) as least, max(n), min(day), max(ntz), max(s) from plain",
        "select count(*) from plain where s is null",
        "select * from plain version as of 1 -- with a comment",
        "select * from instants",
        "select max(ts), min(ts) from instants",
        "select ts from instants where ts > '2000-01-01'",
    ],
)
def test_the_rows_equal_the_rows_that_are_fetched_from_spark(warehouse: Warehouse, text: str) -> None:
    found = without_spark(warehouse, text)
    assert found is not None
    assert shown(found) == shown(fetchable(warehouse.sql(text)).toArrow())


@pytest.mark.parametrize(
    "text",
    [
        "select * from others",
        "select fixed from others",
        "select kind from others",
        "select * from seen",
        "select upper(s) from plain",
        "select i from plain group by i",
        "select i from plain order by i",
        "select a.i from plain a join plain b on a.i = b.i",
        "select min(d) from plain",
        "select missing from plain",
        "select * from missing",
        "select * frm plain",
        "execute immediate 'select * from plain'",
        "insert into plain select * from plain",
    ],
)
def test_all_other_statements_and_all_errors_are_left_to_spark(warehouse: Warehouse, text: str) -> None:
    assert without_spark(warehouse, text) is None


def test_instants_are_left_to_spark_unless_the_profile_says_that_they_are_shown_in_utc(warehouse: Warehouse) -> None:
    for zone in (UNKNOWN_ZONE, "Europe/Berlin"):
        assert without_spark(warehouse, "select ts from instants", zone=zone) is None
        assert without_spark(warehouse, "select count(*) from instants", zone=zone) is not None


def test_no_more_rows_are_read_than_needed(warehouse: Warehouse) -> None:
    for text, most, rows in (("select i from plain", 2, 2), ("select i from plain limit 1", 2, 1)):
        found = without_spark(warehouse, text, most)
        assert found is not None and found.num_rows == rows


@pytest.mark.parametrize(
    ("conf", "answer"),
    [
        ({}, True),
        ({"spark.driver.memory": "2g", "spark.sql.shuffle.partitions": 4}, True),
        ({"spark.sql.caseSensitive": "true"}, False),
        ({"spark.sql.ansi.doubleQuotedIdentifiers": "true"}, False),
        ({"spark.sql.defaultCatalog": "other"}, False),
    ],
)
def test_settings_of_spark_that_may_change_a_query_leave_all_queries_to_spark(
    warehouse: Warehouse, conf: dict[str, object], answer: bool
) -> None:
    assert (answers_of(conf, warehouse.catalog, "silt", "main") is not None) is answer
