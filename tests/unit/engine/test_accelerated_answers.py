"""A Spark with an accelerator gives the rows and the errors of Spark alone: the same query, with it and without it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.warehouse import Warehouse

ROWS = """
create table odd tblproperties (delta.enableDeletionVectors = true) as
select id, id % 7 as k,
  case id % 9 when 0 then double('NaN') when 1 then -0.0d when 2 then 0.0d when 3 then double('-Infinity')
    when 4 then null else id / 3 end as d,
  case id % 5 when 0 then float('NaN') when 1 then float(-0.0) when 2 then float(0) else cast(id as float) / 7 end as f,
  cast(case when id % 11 = 0 then null else id * 1.37 end as decimal(18, 4)) as p,
  cast(id as decimal(38, 10)) * 1000000000000000 as w,
  cast(id % 120 as tinyint) as b, cast(id as smallint) as s, cast(id * 50000 as int) as i,
  date_add(date'0001-02-01', cast(id * 4001 as int)) as day,
  timestamp'1500-06-01 12:00:00.123456' + make_dt_interval(cast(id * 4001 as int)) as at,
  timestamp_ntz'0999-01-01 00:00:00' + make_dt_interval(cast(id * 4001 as int)) as wall,
  case id % 6 when 0 then null when 1 then '' when 2 then 'Straße İ' when 3 then concat('x', id, ' ') when 4 then '10'
    else concat('ä😀', id % 3) end as t,
  cast(case id % 3 when 0 then 'A' when 1 then 'a' else 'B' end as string collate utf8_lcase) as c,
  cast(concat('v', id % 4) as char(4)) as h,
  cast(concat('bytes', id % 4) as binary) as x,
  array(id, null, id % 3) as many, map(id % 3, 'm') as kinds,
  named_struct('n', id % 5, 'inner', named_struct('z', case when id % 2 = 0 then double('NaN') else -0.0d end)) as deep,
  id % 2 = 0 as yes
from range(400)
"""

QUERIES = [
    *("d", "f", "p", "b", "s", "day", "at", "wall", "t", "c", "h", "x", "deep", "yes", "many"),
]
"""The columns by which rows are grouped, counted and sorted."""

EXPRESSIONS = [
    *("count(*)", "count(distinct t)", "count(distinct d)", "sum(d)", "avg(f)", "sum(p)", "avg(p)", "sum(w)", "max(w)"),
    *(
        "min(d)",
        "max(d)",
        "min(f)",
        "max(t)",
        "min(lower(c))",
        "max(day)",
        "min(at)",
        "max(wall)",
        "stddev(i)",
        "corr(i, b)",
    ),
    *("first(id)", "bool_and(yes)", "max_by(t, id)", "sum(s)", "bit_xor(i)", "approx_count_distinct(t)", "sum(b)"),
]
VALUES = [
    *("d + f", "d = -0.0", "d <=> 0.0", "d > 1e308", "p / 7", "p * p", "w + w", "round(p, 2)", "cast(d as string)"),
    *("cast(p as string)", "cast(f as string)", "cast(at as string)", "cast(day as timestamp)", "cast(t as binary)"),
    *(
        "upper(t)",
        "lower(t)",
        "initcap(t)",
        "length(t)",
        "octet_length(t)",
        "trim(t)",
        "substring(t, 2, 2)",
        "reverse(t)",
    ),
    *(
        "t like '%😀%'",
        "t rlike '^[0-9]+$'",
        "regexp_replace(t, '[a-z]', '.')",
        "split(t, '')",
        "concat(t, h)",
        "h = 'v1'",
    ),
    *("c = 'a'", "lower(c)", "year(day)", "date_trunc('month', at)", "date_format(at, 'yyyy-MM-dd HH:mm')", "hour(at)"),
    *(
        "unix_timestamp(at)",
        "weekofyear(day)",
        "datediff(day, date'2000-01-01')",
        "add_months(day, 1)",
        "at + interval 1 month",
    ),
    *("hash(id, d, t)", "xxhash64(d, f, p, t)", "md5(t)", "sha2(t, 256)", "crc32(x)", "hex(x)", "base64(x)"),
    *("many[0]", "size(many)", "array_contains(many, 2)", "kinds[1]", "deep.inner.z", "deep.n + 1", "to_json(deep)"),
    *("i % 7", "-i", "abs(b)", "pmod(i, 3)", "i div 3", "shiftleft(i, 2)", "try_cast(t as int)", "try_divide(i, k)"),
    *(
        "if(yes, d, f)",
        "coalesce(p, 0)",
        "greatest(d, f)",
        "least(d, f)",
        "nanvl(d, 1)",
        "isnan(d)",
        "k in (1, 2, null)",
    ),
    *("row_number() over (partition by k order by d, id)", "rank() over (order by f)", "lag(t) over (order by id)"),
    *(
        "sum(p) over (partition by k order by id rows 3 preceding)",
        "_metadata.file_size > 0",
        "monotonically_increasing_id() >= 0",
    ),
    *(
        "sqrt(d)",
        "exp(f)",
        "ln(i + 1)",
        "pow(f, 2)",
        "ceil(p)",
        "floor(d / 1000)",
        "format_number(i, 2)",
        "conv(i, 10, 16)",
    ),
]
FAILING = [
    *("id / (id % 2)", "id div (id % 2)", "i * 100000", "cast(t as int)", "cast(d as int)", "cast(w as decimal(5, 0))"),
    *(
        "b * cast(100 as tinyint)",
        "s * cast(30000 as smallint)",
        "id * 9223372036854775807",
        "p / (k - k)",
        "-cast(-128 as tinyint) + b",
    ),
    *(
        "w * w * w",
        "many[10]",
        "element_at(many, 10)",
        "cast(t as date)",
        "cast(t as timestamp)",
        "make_date(k, 13, 1)",
    ),
    *(
        "cast(at as tinyint)",
        "raise_error(concat('no ', id))",
        "to_number(t, '99')",
        "cast(t as boolean)",
        "abs(cast(-128 as tinyint) - b % 1)",
    ),
]
"""Expressions that fail in ANSI mode for some row."""


@pytest.fixture(scope="module")
def both(
    spark: SparkSession, accelerator: str | None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Warehouse, Warehouse]]:
    """One warehouse in a session with the accelerator and in a session without it."""
    if accelerator is None:
        pytest.skip("in the lane with an accelerator")
    folder = tmp_path_factory.mktemp("odd")
    alone, accelerated = spark.newSession(), spark.newSession()
    alone.conf.set("spark.comet.enabled", "false")
    without, with_it = Warehouse(alone, str(folder)), Warehouse(accelerated, str(folder))
    without.sql(ROWS)
    without.sql("delete from odd where id in (5, 77, 300)")
    yield with_it, without


def answer(house: Warehouse, query: str) -> Any:
    """Returns the rows as text, in an order that -0.0 and NaN do not change; or the kind of the error."""
    try:
        return sorted(map(repr, house.sql(query).collect()))
    except SiltError as error:
        return error.code
    except PySparkException as error:
        return error.getCondition()


def same(both: tuple[Warehouse, Warehouse], query: str) -> None:
    with_it, without = (answer(house, query) for house in both)
    assert with_it == without, query


@pytest.mark.parametrize("column", QUERIES)
def test_groups_joins_and_sorts(both: tuple[Warehouse, Warehouse], column: str) -> None:
    same(both, f"select {column}, count(*) as n, min(id) as least from odd group by {column}")
    same(both, f"select count(*), sum(a.id), count(distinct b.id) from odd a join odd b on a.{column} = b.{column}")
    same(both, f"select a.id from odd a left anti join odd b on a.{column} = b.{column} and a.id <> b.id")
    with_it, without = (house.sql(f"select id from odd order by {column} desc, id").collect() for house in both)
    assert with_it == without


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_aggregates(both: tuple[Warehouse, Warehouse], expression: str) -> None:
    same(both, f"select k, {expression} as a from (select * from odd distribute by k sort by id) group by k")


@pytest.mark.parametrize("expression", VALUES)
def test_expressions(both: tuple[Warehouse, Warehouse], expression: str) -> None:
    same(both, f"select id, {expression} as v from odd")


@pytest.mark.parametrize("hint", ["(400)", "(400, id)", "(400, deep)", "(400, many, s)", "_BY_RANGE(400, s)"])
def test_shuffles_to_more_partitions_than_spark_writes_files_for_at_once(
    both: tuple[Warehouse, Warehouse], hint: str
) -> None:
    same(both, f"select /*+ REPARTITION{hint} */ id, s, deep, many from odd")


@pytest.mark.parametrize("expression", FAILING)
def test_errors(both: tuple[Warehouse, Warehouse], expression: str) -> None:
    same(both, f"select id, {expression} as v from odd where id > 20")
    same(both, f"select sum(hash({expression})) as v from odd where id > 20")


@pytest.mark.parametrize("seed", range(40))
def test_random_predicates(both: tuple[Warehouse, Warehouse], seed: int) -> None:
    draw = random.Random(seed)
    literals = {
        "d": ("0.0d", "-0.0d", "double('NaN')", "double('Infinity')", "33.0"),
        "f": ("float(0)", "float('NaN')", "float(1.5)"),
        "p": ("0", "137.0000", "null"),
        "s": ("0", "200", "-1"),
        "day": ("date'1582-10-10'", "date'0001-01-01'", "date'2000-01-01'"),
        "at": ("timestamp'1582-10-10 00:00:00'", "timestamp'1500-06-01 12:00:00.123456'"),
        "wall": ("timestamp_ntz'1000-01-01 00:00:00'",),
        "t": ("''", "'10'", "'Straße İ'", "null"),
        "c": ("'a'", "'b'"),
        "h": ("'v1'", "'v1  '"),
    }

    def leaf() -> str:
        column = draw.choice(sorted(literals))
        operator = draw.choice(["=", "<>", "<", "<=", ">", ">=", "<=>"])
        return draw.choice(
            [
                f"{column} {operator} {draw.choice(literals[column])}",
                f"{column} is null",
                f"{column} in ({', '.join(literals[column])})",
            ]
        )

    def tree(depth: int) -> str:
        if not depth:
            return leaf()
        return draw.choice(["not ({a})", "({a} and {b})", "({a} or {b})"]).format(a=tree(depth - 1), b=tree(depth - 1))

    for _ in range(5):
        same(both, f"select id from odd where {tree(draw.randint(0, 3))}")
