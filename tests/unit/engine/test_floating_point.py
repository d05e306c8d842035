"""Every reader compares zeros and NaN as SQL does: -0.0 equals 0.0, and NaN equals itself and is above every number.

`kernel.table.expressions.evaluate` defines the rows for which a condition is true.
"""

from __future__ import annotations

import itertools
import math
import random
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame

from dbt.adapters.silt import engine as silt
from dbt.adapters.silt.engine.kernel.table.expressions import (
    And,
    Column,
    Comparison,
    Expression,
    In,
    IsNull,
    Not,
    Or,
    evaluate,
)
from tests.unit.engine.datasource.tables import Tables
from tests.unit.engine.doors import by_arrow, by_data_source, by_shell, by_sql
from tests.unit.engine.house import House

SMALLEST = {"double": 5e-324, "float": struct.unpack("<f", b"\1\0\0\0")[0]}
COLUMNS = {
    "d": ("double", Column.of("d")),
    "f": ("float", Column.of("f")),
    "s.d": ("double", Column.of("s", "d")),
    "s.t.f": ("float", Column.of("s", "t", "f")),
}
SCHEMA = "id bigint, d double, f float, s struct<n: bigint, d: double, t: struct<f: float>>"
VECTORS = "'delta.enableDeletionVectors' = 'true'"
FEED = "'delta.enableChangeDataFeed' = 'true'"
CLAUSES = {
    "plain": "",
    "partitioned": "partitioned by (d, f)",
    "mapped": "tblproperties ('delta.columnMapping.mode' = 'name')",
    "deleted": f"tblproperties ({VECTORS})",
    "with row ids": "tblproperties ('delta.enableRowTracking' = 'true')",
    "by the data source": "",
}
"""The properties of the tables of each kind."""
KINDS = pytest.mark.parametrize(
    "properties",
    ["'a' = 'b'", *(pytest.param(each, marks=pytest.mark.long) for each in (VECTORS, FEED)), f"{VECTORS}, {FEED}"],
)
"""For tests of the results of statements, with and without deletion vectors."""


def values(kind: str) -> list[float | None]:
    least = SMALLEST[kind]
    return [-0.0, 0.0, math.nan, math.inf, -math.inf, least, -least, 1.0, -1.5, 100.0, None]


def literal(value: float | None, kind: str) -> str:
    if value is None:
        return "null"
    if not math.isfinite(value):
        return f"{kind}('{'NaN' if math.isnan(value) else 'Infinity' if value > 0 else '-Infinity'}')"
    return f"{value!r}{'D' if kind == 'double' else 'F'}" if abs(value) != SMALLEST["float"] else f"float('{value!r}')"


def record(number: int, value: float | None, single: float | None) -> dict[str, Any]:
    return {"id": number, "d": value, "f": single, "s": {"n": number, "d": value, "t": {"f": single}}}


def files() -> list[list[dict[str, Any]]]:
    """Returns the records of each file: those with a minus sign, NaN and 1.0, and the rest.

    This makes Parquet's filters miss a zero or a hidden NaN. Each value occurs many times, so that dictionaries are
    written.
    """
    groups: list[list[tuple[float | None, float | None]]] = [[], [], []]
    for pair in zip(values("double"), values("float"), strict=True):
        value = pair[0]
        one_or_nan = value is not None and (value == 1.0 or math.isnan(value))
        groups[1 if one_or_nan else 0 if value is not None and math.copysign(1, value) < 0 else 2].append(pair)
    numbers = itertools.count()
    return [[record(next(numbers), *pair) for pair in group * 6] for group in groups]


def records() -> list[dict[str, Any]]:
    return [row for rows in files() for row in rows]


def arrow(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    inner = pa.struct([("n", pa.int64()), ("d", pa.float64()), ("t", pa.struct([("f", pa.float32())]))])
    schema = pa.schema([("id", pa.int64()), ("d", pa.float64()), ("f", pa.float32()), ("s", inner)])
    return pa.Table.from_pylist(list(rows), schema)


def misjudged() -> list[tuple[str, Expression]]:
    """Returns the conditions for which Parquet's filters wrongly skip one of the files, on each column."""
    found: list[tuple[str, Expression]] = []
    for name, (kind, column) in COLUMNS.items():
        for operator, value in (
            *(("=", 0.0), ("=", -0.0), ("<=>", 0.0), ("<=>", -0.0), ("<=", -0.0), (">=", 0.0)),
            *((">", 100.0), (">=", 100.0), ("!=", 1.0)),
        ):
            found.append((f"{name} {operator} {literal(value, kind)}", Comparison(operator, column, value)))  # type: ignore[arg-type]
        found.append((f"{name} in ({literal(0.0, kind)}, {literal(7.0, kind)})", In(column, (0.0, 7.0))))
    return found


def conditions(seed: int, count: int) -> Iterator[tuple[str, Expression]]:
    """Returns texts of SQL with their predicates; alone, negated and joined."""
    chance = random.Random(seed)
    made = [_simple(chance) for _ in range(count)]
    yield from made
    for (text, meaning), (other, also) in zip(made[::3], made[1::3], strict=False):
        yield f"not ({text})", Not(meaning)
        yield f"({text}) and ({other})", And((meaning, also))
        yield f"({text}) or ({other})", Or((meaning, also))


def _simple(chance: random.Random) -> tuple[str, Expression]:
    name = chance.choice(list(COLUMNS))
    kind, column = COLUMNS[name]
    some = chance.choices(values(kind), k=chance.choice((1, 3, 12)))
    match chance.randrange(4):
        case 0:
            return f"{name} in ({', '.join(literal(each, kind) for each in some)})", In(column, tuple(some))
        case 1:
            return f"{name} is null", IsNull(column)
        case _:
            operator = chance.choice(("=", "<=>", "!=", "<", "<=", ">", ">="))
            return f"{name} {operator} {literal(some[0], kind)}", Comparison(operator, column, some[0])  # type: ignore[arg-type]


def expected(rows: Sequence[Mapping[str, Any]], meaning: Expression) -> list[int]:
    return [row["id"] for row in rows if evaluate(meaning, row) is True]


def filled(house: House, kind: str, folder: Path) -> None:
    """Creates the table `t` with the records, written in some way."""
    if kind == "foreign":
        folder.mkdir()
        for at, rows in enumerate(files()):
            pq.write_table(arrow(rows), folder / f"{at}.parquet", write_page_index=True)
        house.sql(f"convert to delta parquet.`{folder}`")
        house.sql(f"create table t clone delta.`{folder}`")
        return
    house.sql(f"create table t ({SCHEMA}) using delta {CLAUSES[kind]}")
    if kind == "by the data source":
        silt.DataSource.register(house.warehouse.spark)
        for rows in frames(house):  # type: ignore[assignment]
            Tables(house).write(rows, "t")  # type: ignore[arg-type]
        return
    insert(house, "t")
    if kind == "deleted":
        insert(house, "t", "id + 1000")
        house.sql("delete from t where id >= 1000")


def frames(house: House) -> list[DataFrame]:
    """Returns the records of each file."""
    return [house.warehouse.spark.createDataFrame(arrow(rows)).coalesce(1) for rows in files()]


def insert(house: House, table: str, number: str = "id") -> None:
    for rows in frames(house):
        rows.createOrReplaceTempView("records")
        house.sql(f"insert into {table} select {number}, d, f, s from records")


KINDS_OF_TABLES = [*CLAUSES, "foreign"]


@pytest.mark.in_folders("other writers' files are converted in a folder")
@pytest.mark.parametrize(
    ("kind", "step"),
    [
        *((kind, 1 if kind in ("plain", "foreign") else 3) for kind in KINDS_OF_TABLES),
        *(
            pytest.param(kind, 1, marks=pytest.mark.long)
            for kind in KINDS_OF_TABLES
            if kind not in ("plain", "foreign")
        ),
    ],
)
def test_all_readers_find_the_rows_for_which_a_condition_is_true(
    house: House, kind: str, step: int, tmp_path: Path, seed: int
) -> None:
    filled(house, kind, tmp_path / "folder")
    chosen = [*misjudged()[::step], *conditions(seed, 12)]
    texts, rows = [text for text, _ in chosen], records()
    wanted = [expected(rows, meaning) for _, meaning in chosen]
    assert dict(zip(texts, by_sql(house, "t", texts), strict=True)) == dict(zip(texts, wanted, strict=True))
    others = [(by_arrow(house, "t", text), by_shell(house, "t", text)) for text in texts]
    answered = [(text, found, want) for text, pair, want in zip(texts, others, wanted, strict=True) for found in pair]
    assert [(text, found) for text, found, _ in answered if found is not None] == [
        (text, want) for text, found, want in answered if found is not None
    ]
    assert any(found is not None for _, found, _ in answered)


@pytest.mark.parametrize(("step", "count"), [(7, 3), pytest.param(3, 6, marks=pytest.mark.long)])
def test_the_data_source_finds_them_too(house: House, tmp_path: Path, seed: int, step: int, count: int) -> None:
    filled(house, "plain", tmp_path)
    silt.DataSource.register(house.warehouse.spark)
    house.warehouse.spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    chosen = [*misjudged()[::step], *conditions(seed, count)]
    found = by_data_source(house, "t", [text for text, _ in chosen])
    assert found == [expected(records(), meaning) for _, meaning in chosen]


ZEROS = [row["id"] for row in records() if row["d"] == 0]
NANS = [row["id"] for row in records() if row["d"] is not None and math.isnan(row["d"])]
BY_WAYS_ROUND = {
    "a view": "select id from v where d = 0",
    "a scalar subquery": "select id from t where d = (select max(x) from values (0.0D) x(x))",
    "an IN subquery": "select id from t where s.d in (select x from values (0.0D) x(x))",
    "a join with a constant": "select id from t join (select 0.0D as x) u on t.d = u.x",
    "what another column is equal to": "select t.id from t join t u on t.d = u.d and t.id = u.id where u.d = 0",
    "two columns": "select id from t where d = s.d and s.d = 0",
    "a condition on the struct": "select id from t where s.t = named_struct('f', float(0.0))",
    "a CASE": "select id from t where case when id < 0 then 1 else d end = 0",
    "HAVING": "select id from t group by id, d having d = 0",
    "an EXISTS": "select id from t where exists (select 1 from values (0.0D) x(x) where x = t.d)",
}


@pytest.mark.connect
def test_conditions_that_spark_derives_find_zeros(house: House, tmp_path: Path) -> None:
    filled(house, "plain", tmp_path)
    house.sql("create view v as select * from t")
    for way, query in BY_WAYS_ROUND.items():
        assert sorted(row[0] for row in house.sql(query).collect()) == ZEROS, way


def test_a_table_created_by_a_query_with_a_condition_has_all_rows(house: House, tmp_path: Path) -> None:
    filled(house, "plain", tmp_path)
    house.sql("create table made using delta as select * from t where f in (0.0F)")
    assert house.sql("select count(*) from made").collect()[0][0] == len(ZEROS)
    house.sql("insert into made select * from t where s.t.f <=> -0.0F")
    assert house.sql("select count(*) from made where d = -0.0").collect()[0][0] == 2 * len(ZEROS)


@pytest.mark.parametrize("path", ["d", "s.t.f", *(pytest.param(each, marks=pytest.mark.long) for each in ("f", "s.d"))])
@KINDS
def test_rows_are_deleted_and_updated_whatever_the_sign_of_zero(house: House, properties: str, path: str) -> None:
    house.sql(f"create table t ({SCHEMA}) using delta tblproperties ({properties})")
    insert(house, "t")
    house.sql(f"update t set id = -1 where {path} = 0")
    assert house.sql("select count(*) from t where id = -1").collect()[0][0] == len(ZEROS)
    house.sql(f"delete from t where {path} in (0.0D) or {path} > 1e300")
    left = [row["id"] for row in records() if row["d"] is None or (row["d"] < math.inf and row["d"] != 0)]
    assert sorted(row.id for row in house.sql("select id from t").collect()) == left


@KINDS
def test_a_merge_on_zero_updates_and_inserts_nothing(house: House, properties: str) -> None:
    house.sql(f"create table t (id bigint, d double, s struct<f: float>) using delta tblproperties ({properties})")
    zeros = "select /*+ repartition(1) */ id, if(id < 60, -0.0D, 1D), named_struct('f', if(id < 60, -0.0F, 1F))"
    house.sql(f"insert into t {zeros} from range(90)")
    for key in ("t.d = s.d", "t.d <=> s.d", "t.s.f = s.s.f", "t.d = 0.0 and t.id <> s.id"):
        source = "(select -1L as id, 0.0D as d, named_struct('f', 0.0F) as s)"
        house.sql(
            f"merge into t using {source} s on {key} when matched then update set id = t.id + 100"
            " when not matched then insert *"
        )
    found = sorted(row.id for row in house.sql("select id from t").collect())
    assert found == [*range(60, 90), *range(400, 460)]


@KINDS
def test_rows_are_replaced_whatever_the_sign_of_zero(house: House, properties: str) -> None:
    house.sql(f"create table t (id bigint, d double) using delta tblproperties ({properties})")
    rows = "select /*+ repartition(1) */ id, if(id < 9, -0.0D, double(id)) from range(12)"
    for clause in ("where d = 0", "on t.d <=> 0.0D", "using (d)"):
        house.sql(f"insert overwrite t {rows}")
        house.sql(f"insert into t replace {clause} select -1L as id, 0.0D as d")
        assert sorted(row.id for row in house.sql("select id from t").collect()) == [-1, 9, 10, 11], clause


@pytest.mark.parametrize("kind", ["double", pytest.param("float", marks=pytest.mark.long)])
@KINDS
def test_partitions_of_both_zeros_are_found_and_changed_together(house: House, properties: str, kind: str) -> None:
    house.sql(f"create table t (id bigint, p {kind}) using delta partitioned by (p) tblproperties ({properties})")
    parts = ["-0.0D", "0.0D", "double('NaN')", "double('Infinity')", "1.5D", "null"]
    for at, part in enumerate(parts):
        house.sql(f"insert into t select /*+ repartition(1) */ id + {100 * at}, {part} from range(10)")
    assert {str(dict(each)["p"]) for each in house.log("t").snapshot().files["partition_values"].to_pylist()} >= {
        "-0.0",
        "0.0",
    }
    texts = ["p <=> 0.0D", "p = 0", "p in (0)", "p > 2", f"p = {kind}('NaN')", "p <> 0", "p is null"]
    assert [len(found) for found in by_sql(house, "t", texts)] == [20, 20, 20, 20, 10, 30, 10]
    house.sql("update t set id = -1 where p <=> -0.0D")
    assert len(by_sql(house, "t", ["id = -1"])[0]) == 20
    house.sql(
        f"merge into t using (select {kind}(0.0) as p) s on t.p = s.p when matched then delete when not matched"
        " then insert (id, p) values (-2, s.p)"
    )
    assert [len(found) for found in by_sql(house, "t", ["id < 0", "p > 0"])] == [0, 30]


@pytest.mark.in_folders("other writers' files are converted in a folder")
def test_nan_is_found_in_files_whose_bounds_omit_it(house: House, tmp_path: Path) -> None:
    filled(house, "foreign", tmp_path / "folder")
    for name in ("d", "s.t.f"):
        greatest = house.sql(f"select max({name}) from t where {name} > 100").collect()[0][0]
        assert math.isnan(greatest)
        assert by_sql(house, "t", [f"isnan({name})", f"{name} > 1e300"])[0] == NANS
    house.sql("delete from t where d > 100")
    assert not by_sql(house, "t", ["d > 100"])[0]


@pytest.mark.in_folders("the files are in a folder of this machine")
@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_files_outside_of_tables_are_read_like_tables(
    house: House, tmp_path: Path, file_format: str, seed: int
) -> None:
    for rows in frames(house):
        rows.write.mode("append").format(file_format).save(str(tmp_path / "spark"))
    source = f"read_files('{tmp_path}/spark', format => '{file_format}')"
    chosen = [*misjudged(), *conditions(seed, 6)]
    assert by_sql(house, source, [text for text, _ in chosen]) == [expected(records(), each) for _, each in chosen]
