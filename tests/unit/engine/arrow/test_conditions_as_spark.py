# ruff: noqa: E501
"""Conditions on Arrow have the outcome that they have in Spark, for every row."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from dbt.adapters.silt import engine as silt
from dbt.adapters.silt.engine import Warehouse
from dbt.adapters.silt.engine.arrow.read import condition
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.errors import UnsupportedStatementError
from tests.examples import examples

ZONE = "America/Los_Angeles"
SCHEMA = (
    "id int, b tinyint, i int, l bigint, f float, d double, n decimal(12, 2), big decimal(38, 10), s string, t date, "
    "ts timestamp, ntz timestamp_ntz, flag boolean, st struct<x: int, y: string>, p string, pd date, pn decimal(6, 3)"
)
ROWS = (
    "(0, 1Y, 3, 3L, float('0.1'), 0.1D, 3.50, 12345678901234567890.0000000001, 'a', date'2024-01-01', "
    "timestamp'2024-01-01 00:00:00', timestamp_ntz'2024-01-01 00:00:00', true, struct(1, 'y'), 'x', date'2024-01-01', 1.5)",
    "(1, -128Y, -2147483648, -9223372036854775808L, float('NaN'), double('NaN'), -0.01, -3.5, 'A', date'1969-12-31', "
    "timestamp'1969-12-31 23:59:59.999999', timestamp_ntz'1969-12-31 23:59:59.999999', false, struct(null, null), null, "
    "null, null)",
    "(2, 127Y, 2147483647, 9223372036854775807L, float('Infinity'), double('-Infinity'), 9999999999.99, 0, 'ab', "
    "date'0001-01-01', timestamp'2024-07-01 12:34:56.789', timestamp_ntz'0001-01-01 00:00:00', null, null, 'X', "
    "date'2024-07-01', -0.001)",
    "(3, null, null, null, null, null, null, null, null, null, null, null, null, null, 'x', null, 0)",
    "(4, 0Y, 0, 0L, float('-0.0'), -0.0D, 0.00, 3.5, '', date'9999-12-31', timestamp'2024-03-10 03:00:00', "
    "timestamp_ntz'2024-03-10 02:30:00', true, struct(3, 'ü'), 'é', date'1970-01-01', 1.5)",
    "(5, 3Y, 4, 9007199254740993L, float('16777216'), 9007199254740992D, 3.00, 3, 'ü', date'2024-01-02', "
    "timestamp'2024-01-01 08:00:00', timestamp_ntz'2024-01-01 08:00:00', false, struct(2, 'a'), ' x', date'2024-01-01', 99)",
    "(6, 5Y, 3, 4L, float('3.5'), 3.5D, 3.51, 3.5000000001, '\U0001f600', date'2023-12-31', "
    "timestamp'2024-12-31 23:59:59.123456', timestamp_ntz'2024-12-31 23:59:59.123456', null, struct(1, ''), 'a b', "
    "date'9999-12-31', 1.499)",
    "(7, null, null, null, null, null, null, null, 'it\\'s', null, null, null, null, struct(null, 'a%'), 'a\\\\b', null, null)",
)
COLUMNS = ("b", "i", "L", "f", "d", "n", "big", "s", "t", "ts", "ntz", "flag", "st.x", "ST.Y", "p", "pd", "pn", "t.p")
LITERALS = (
    *("0", "3", "-128", "127", "128", "2147483647", "-2147483648", "9223372036854775807", "9007199254740993", "16777217"),
    *("3.5", "3.50", "3.0", "-0.01", "0.1", "9999999999.99", "12345678901234567890.0000000001", "1.5", "1e0", "3.5D"),
    *("0.1D", "9007199254740992D", "1e400", "-1.5e-3", "3L", "3BD", "0.1F", "null", "true", "false"),
    *("'a'", "'A'", "''", "'ü'", "'x'", "'\U0001f600'", "'3'", "'it''s'", "\"a\"", "'it\\'s'", '"it\'s"', "'a\\\\b'", "r'a\\b'", "'\\u0061'", "'2024-01-01'", "'2024-1-1'", "'now'"),
    *("date'2024-01-01'", "date'9999-12-31'", "timestamp'2024-01-01 00:00:00'", "timestamp'2024-01-01 08:00:00Z'"),
    *("timestamp_ntz'2024-03-10 02:30:00'", "'2024-03-10 02:30:00'", "'2024-01-01 00:00:00'", "timestamp'2024-03-10'"),
    *("'1969-12-31 23:59:59.999999'", "cast('2024-01-01' as date)", "1 + 2", "i", "current_date()", "'2024-01-01T08:00:00+00:00'"),
)  # fmt: skip
COLUMN, LITERAL = st.sampled_from(COLUMNS), st.sampled_from(LITERALS)
OPERATOR = st.sampled_from(("=", "<>", "!=", "<", "<=", ">", ">=", "<=>", "=="))
LEAVES = st.one_of(
    st.builds("{} {} {}".format, COLUMN, OPERATOR, LITERAL),
    st.builds("{} {} {}".format, LITERAL, OPERATOR, COLUMN),
    st.builds("{} between {} and {}".format, COLUMN, LITERAL, LITERAL),
    st.builds("{} not between {} and {}".format, COLUMN, LITERAL, LITERAL),
    st.builds("{} {} ({}, {}, {})".format, COLUMN, st.sampled_from(("in", "not in")), LITERAL, LITERAL, LITERAL),
    st.builds("{} {} ({})".format, COLUMN, st.sampled_from(("in", "not in")), LITERAL),
    st.builds("{} is {}null".format, COLUMN, st.sampled_from(("", "not "))),
    st.builds("{} is {}distinct from {}".format, COLUMN, st.sampled_from(("", "not ")), LITERAL),
    st.builds("{} {}like {}".format, COLUMN, st.sampled_from(("", "not ")), st.sampled_from(("'a%'", "'a'", "'ü%'", "'_'", "'a\\%'", "'it\\'%'", '"it%"', "'a\\\\\\\\b'"))),
    st.builds("{}".format, COLUMN),
)  # fmt: skip
CONDITIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds("({}) and ({})".format, inner, inner),
        st.builds("({}) or ({})".format, inner, inner),
        st.builds("not ({})".format, inner),
    ),
    max_leaves=3,
)


@pytest.fixture(scope="module")
def house(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warehouse]:
    """A table with rows in several files, and several rows in a file."""
    folder = tmp_path_factory.mktemp("arrow")
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", ZONE)
    warehouse = Warehouse(session, str(folder / "w"))
    warehouse.sql(f"create table t ({SCHEMA}) partitioned by (p, pd, pn)")
    for row in ROWS:
        warehouse.sql(f"insert into t values {row}")
    warehouse.sql(f"create table u ({SCHEMA})")
    warehouse.sql(f"insert into u values {', '.join(ROWS)}")
    yield warehouse


def location(house: Warehouse) -> str:
    return house.catalog.table(RelationName("silt", "main", "t")).store.root.removesuffix("/main/t")


def is_exact(house: Warehouse, text: str) -> bool:
    snapshot = house.snapshot(RelationName("silt", "main", "t"))
    try:
        condition(text, snapshot, "main.t", ZONE)
    except UnsupportedStatementError as refused:
        assert "`Warehouse.sql`" in str(refused)
        return False
    return True


def ids(house: Warehouse, table: str, text: str) -> list[int]:
    found = silt.read(f"main.{table}", location(house), columns=["id"], where=text, time_zone=ZONE)
    return sorted(found["id"].to_pylist())


@settings(max_examples=examples(12), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.lists(CONDITIONS, min_size=60, max_size=60))
def test_an_arrow_condition_selects_the_rows_that_spark_selects_or_is_refused(
    house: Warehouse, texts: list[str]
) -> None:
    exact = [text for text in texts if is_exact(house, text)]
    outcomes = ", ".join(f"({text}) as c{at}" for at, text in enumerate(exact))
    rows = house.sql(f"select id, {outcomes or 1} from t").collect()
    for at, text in enumerate(exact):
        for outcome, asked in ((True, text), (False, f"not ({text})")):
            expected = sorted(row.id for row in rows if row[f"c{at}"] is outcome)
            assert ids(house, "t", asked) == expected, asked
            assert ids(house, "u", asked.replace("t.p", "u.p")) == expected, asked
