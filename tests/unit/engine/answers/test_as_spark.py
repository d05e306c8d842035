"""Answers of `silt sql` without Spark equal Spark's: names, types and values."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine import Warehouse
from dbt.adapters.silt.engine.answers.quick import Quick, QuickAnswer, Source
from dbt.adapters.silt.engine.answers.sessions import UNKNOWN_ZONE, Names
from dbt.adapters.silt.engine.kernel.rows.types import uniform
from dbt.adapters.silt.engine.sql.grammar.parse import parse
from dbt.adapters.silt.runs.fetch import fetchable
from tests.examples import examples

COLUMNS = ("id", "B", "n", "s", "t", "ts", "ntz", "flag", "f", "p", "o.id", "tags", "st", "m", "c")
LITERALS = (
    "0",
    "3",
    "-1.5",
    "'a'",
    "'x'",
    "null",
    "true",
    "date'2024-01-01'",
    "timestamp'2024-01-01 08:00:00Z'",
    "'2024'",
)
OPERATORS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
LEAVES = st.one_of(
    st.builds("{} {} {}".format, st.sampled_from(COLUMNS), st.sampled_from(OPERATORS), st.sampled_from(LITERALS)),
    st.builds("{} is {}null".format, st.sampled_from(COLUMNS), st.sampled_from(("", "not "))),
    st.sampled_from(("flag", "id in (1, 2, 7)", "s like 'a%'", "id between 2 and 5")),
)
CONDITIONS = st.recursive(
    LEAVES, lambda inner: st.builds("({}) {} ({})".format, inner, st.sampled_from(("and", "or")), inner), max_leaves=3
)
ALIASES = st.sampled_from(("", " as x1", " y2", " AS `we ird`"))
ITEMS = st.builds("{}{}".format, st.sampled_from(COLUMNS), ALIASES)
CALLS = st.builds(
    "{}{}".format,
    st.one_of(
        st.sampled_from(("count(*)", "COUNT(1)", "count( * )", "count(2)")),
        st.builds("{}({})".format, st.sampled_from(("min", "MAX")), st.sampled_from(COLUMNS)),
    ),
    ALIASES,
)
LISTS = st.one_of(
    st.just("*"),
    st.lists(ITEMS, min_size=1, max_size=3).map(", ".join),
    st.lists(CALLS, min_size=1, max_size=3).map(", ".join),
)


@pytest.fixture(scope="module")
def warehouse(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warehouse]:
    """A table with many types, in three partitions and more files, with a deleted row."""
    house = Warehouse(spark, str(tmp_path_factory.mktemp("house")))
    house.sql(
        "create table orders (id int, b tinyint, n decimal(12, 2), s string, t date, ts timestamp, ntz timestamp_ntz, "
        "flag boolean, f float, tags array<string>, st struct<x: int, y: timestamp>, m map<string, int>, c char(3), "
        "p string) partitioned by (p) tblproperties ('delta.enableDeletionVectors' = 'true')"
    )
    for start in (0, 4):
        house.sql(
            f"insert into orders select id, cast(id as tinyint), id * 1.5, if(id % 3 = 0, null, concat('a', id)), "
            f"date'2024-01-01' + cast(id as int), "
            f"timestamp'2024-01-01 08:00:00.123456' + make_interval(0, 0, 0, 0, id), "
            f"timestamp_ntz'2024-03-10 02:30:00', id % 2 = 0, if(id = 2, float('NaN'), id / 10), array('x', null), "
            f"struct(id, timestamp'2024-01-01 00:00:00'), map('k', id), 'ab', if(id % 2 = 0, 'x', null) "
            f"from range({start}, {start + 4})"
        )
    house.sql("delete from orders where id = 1")
    house.sql("create view big as select * from orders")
    yield house


def quickly(warehouse: Warehouse, text: str) -> QuickAnswer | None:
    return Quick(Names(warehouse.catalog, "silt", "main"), UNKNOWN_ZONE).answer(parse(text))


def by_spark(warehouse: Warehouse, text: str) -> pa.Table:
    return uniform(fetchable(warehouse.sql(text), local_times=False).toArrow())


def in_order(rows: pa.Table) -> list[str]:
    return sorted(map(str, rows.to_pylist()))


@settings(max_examples=examples(60), suppress_health_check=list(HealthCheck))
@given(listed=LISTS, condition=st.one_of(st.none(), CONDITIONS), version=st.sampled_from(("", " version as of 1")))
def test_an_answer_without_spark_equals_sparks_answer(
    warehouse: Warehouse, listed: str, condition: str | None, version: str
) -> None:
    text = f"select {listed} from main.orders{version} o" + ("" if condition is None else f" where {condition}")
    found = quickly(warehouse, text)
    if found is not None:
        rows, expected = uniform(found.rows), by_spark(warehouse, text)
        assert rows.schema == expected.schema, text
        assert in_order(rows) == in_order(expected), text


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("select 1", Source.QUERY),
        ("SELECT 2147483647, 'a b' , 0 as x, 'it' as `y z`", Source.QUERY),
        ("select 7 as limit limit 2", Source.QUERY),
        ("select count(*) from orders", Source.LOG),
        ("select count(*) as n, max(id) from orders version as of 1 limit 5", Source.LOG),
        ("select count(*) from orders where id > 2 limit 1", Source.FILES),
        ("select min(id) as a, max(ts), count(1) from orders version as of 1", Source.LOG),
        ("select count(*) from orders where p = 'x'", Source.LOG),
        ("select count(*) from orders where id > 2", Source.FILES),
        ("select id, b, n, s, t, ts, ntz, flag, f, tags, st, m, p from orders", Source.FILES),
    ],
)
def test_common_queries_are_answered_without_spark(warehouse: Warehouse, text: str, source: Source) -> None:
    found = quickly(warehouse, text)
    assert found is not None and found.source is source
    assert uniform(found.rows).schema == by_spark(warehouse, text).schema
    assert in_order(uniform(found.rows)) == in_order(by_spark(warehouse, text))


@pytest.mark.parametrize(
    "text",
    [
        "select id from big",
        "select c from orders",
        "select * from orders",
        "select st.x from orders",
        "select 1 + 1",
        "select 2147483648",
        "select 01",
        "select 1.0",
        "select 1L",
        "select 1, 1",
        "select -1",
        "select 'it''s'",
        "select 'a\\n'",
        "select r'a'",
        "select 'a' 'b'",
        "select null",
        "select distinct 1",
        "select 1 x",
        "select 1 limit 0",
        "select 1 limit all",
        "select 1, limit 1",
        "select limit 1",
        "select count(*) from orders limit 0",
    ],
)
def test_views_padded_strings_and_other_expressions_are_passed_to_spark(warehouse: Warehouse, text: str) -> None:
    assert quickly(warehouse, text) is None
