"""A result of a python model keeps each value, or raises an error that names the column."""

from __future__ import annotations

import datetime
import decimal
import warnings
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from dbt.adapters.silt.materializations.python_models.results import register, to_frame

ARROW = pa.table({"id": pa.array([1, 2], pa.int64()), "name": ["a", None]})
OPAQUE = pa.ExtensionArray.from_storage(pa.opaque(pa.int64(), "kind", "vendor"), pa.array([1]))
DECIMAL = decimal.Decimal("1.10")
NOON = datetime.datetime(2026, 3, 1, 12)
UTC = datetime.timezone.utc


def stored(spark: SparkSession, rows: Any, expected: str | None = None) -> tuple[str, list[tuple[Any, ...]]]:
    """Returns the types of the columns, and the rows with times as strings that contain their zone."""
    frame = to_frame(spark, rows, None if expected is None else StructType.fromDDL(expected))  # type: ignore[arg-type]
    texts = [
        f"cast(`{each.name}` as string) as `{each.name}`"
        if "timestamp" in each.dataType.simpleString()
        else f"`{each.name}`"
        for each in frame.schema.fields
    ]
    return frame.schema.simpleString(), sorted(map(tuple, frame.selectExpr(*texts).collect()), key=repr)


ENCODED = {
    "categories": (pl.Series(["a", None], dtype=pl.Categorical), "string", ["a", None]),
    "enumeration": (pl.Series(["a", None], dtype=pl.Enum(["a"])), "string", ["a", None]),
    "lists": (pl.Series([["a"]], dtype=pl.List(pl.Categorical)), "array<string>", [["a"]]),
    "structs": (pl.Series([{"x": "a"}], dtype=pl.Struct({"x": pl.Enum(["a"])})), "struct<x:string>", [("a",)]),
}


@pytest.mark.parametrize("case", ENCODED)
def test_categories_of_polars_are_text(spark: SparkSession, case: str) -> None:
    column, kind, values = ENCODED[case]
    assert stored(spark, pl.DataFrame({"a": column})) == (f"struct<a:{kind}>", sorted([(v,) for v in values], key=repr))  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "rows",
    [
        ARROW,
        ARROW.to_batches()[0],
        ARROW.to_reader(),
        pl.from_arrow(ARROW),
        pl.from_arrow(ARROW).lazy(),  # type: ignore[union-attr]
        pd.DataFrame({"id": [1, 2], "name": ["a", None]}),
        ARROW.to_pandas(types_mapper=pd.ArrowDtype),
        ARROW.to_pandas(),
    ],
    ids=["table", "batch", "reader", "polars", "lazy", "pandas", "pandas-arrow", "pandas-numpy"],
)
def test_frames_of_other_libraries_are_accepted(spark: SparkSession, rows: Any) -> None:
    assert stored(spark, rows) == ("struct<id:bigint,name:string>", [(1, "a"), (2, None)])


def test_a_duckdb_relation_is_accepted(spark: SparkSession) -> None:
    relation = duckdb.sql("select 1::bigint as id, 'a' as name, [1, 2]::utinyint[] as few")
    assert stored(spark, relation) == ("struct<id:bigint,name:string,few:array<smallint>>", [(1, "a", [1, 2])])


def test_a_frame_of_pandas_on_spark_is_accepted_without_its_index(spark: SparkSession) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pyspark.pandas as ps

        rows: Any = ps.DataFrame({"id": [1, 2], "name": ["a", None]})
    assert stored(spark, rows) == ("struct<id:bigint,name:string>", [(1, "a"), (2, None)])


def test_a_frame_of_another_session_is_accepted(spark: SparkSession) -> None:
    other = spark.newSession()
    register(other, to_frame(other, spark.range(2)), "`numbers__dbt_tmp`")
    assert other.sql("select sum(id) from numbers__dbt_tmp").collect() == [(1,)]
    lasting = "not isTemporary"
    assert spark.sql("show views in global_temp").where(lasting).collect() == []
    assert other.sql("show views").where(lasting).collect() == []


# Types, nulls


COLUMNS = {
    "uint8": (pa.array([255, None], pa.uint8()), "smallint", [255, None]),
    "uint16": (pa.array([2**16 - 1], pa.uint16()), "int", [2**16 - 1]),
    "uint32": (pa.array([2**32 - 1], pa.uint32()), "bigint", [2**32 - 1]),
    "uint64": (pa.array([2**64 - 1], pa.uint64()), "decimal(20,0)", [decimal.Decimal(2**64 - 1)]),
    "float16": (pa.array([1.5], pa.float16()), "float", [1.5]),
    "categories": (pa.array(["a", None]).dictionary_encode(), "string", ["a", None]),
    "string_view": (pa.array(["a"], pa.string_view()), "string", ["a"]),
    "binary_view": (pa.array([b"a"], pa.binary_view()), "binary", [bytearray(b"a")]),
    "decimal": (pa.array([DECIMAL], pa.decimal128(9, 2)), "decimal(9,2)", [DECIMAL]),
    "wide decimal": (pa.array([DECIMAL], pa.decimal256(38, 2)), "decimal(38,2)", [DECIMAL]),
    "hundreds": (pa.array([decimal.Decimal(500)]).cast(pa.decimal128(5, -2)), "decimal(7,0)", [decimal.Decimal(500)]),
    "date64": (pa.array([NOON.date()], pa.date64()), "date", [NOON.date()]),
    "zoned": (pa.array([NOON], pa.timestamp("ns", "Asia/Tokyo")), "timestamp", ["2026-03-01 04:00:00"]),
    "wall clock": (pa.array([NOON], pa.timestamp("s")), "timestamp", ["2026-03-01 12:00:00"]),
    "nanoseconds": (pa.array([1_500], pa.timestamp("ns", "UTC")), "timestamp", ["1969-12-31 16:00:00.000001"]),
    "list": (pa.array([[1, None]], pa.large_list(pa.uint8())), "array<smallint>", [[1, None]]),
    "pair": (pa.array([[1, 2]], pa.list_(pa.int64(), 2)), "array<bigint>", [[1, 2]]),
    "map": (pa.array([[("a", 1)]], pa.map_(pa.string_view(), pa.uint8())), "map<string,smallint>", [{"a": 1}]),
    "struct": (pa.array([{"a": 1, "b": ["x"]}]), "struct<a:bigint,b:array<string>>", [(1, ["x"])]),
    "nulls": (pa.nulls(2), "string", [None, None]),
    "struct of nulls": (pa.array([{"a": None}]), "struct<a:string>", [(None,)]),
}


@pytest.mark.parametrize("case", COLUMNS)
def test_a_column_of_arrow_keeps_its_values(spark: SparkSession, case: str) -> None:
    array, kind, values = COLUMNS[case]
    assert stored(spark, pa.table({"c": array})) == (f"struct<c:{kind}>", sorted([(v,) for v in values], key=repr))  # type: ignore[attr-defined]


PANDAS = {
    "nullable integers": (pd.array([1, None], "Int64"), "bigint", [1, None]),
    "not a number": ([1.5, float("nan")], "double", [1.5, None]),
    "booleans": (pd.array([True, None], "boolean"), "boolean", [True, None]),
    "categories": (pd.Categorical(["a", None]), "string", ["a", None]),
    "decimals": ([DECIMAL, None], "decimal(3,2)", [DECIMAL, None]),
    "days": ([NOON.date(), None], "date", [NOON.date(), None]),
    "wall clock": (pd.to_datetime([NOON, None]), "timestamp", ["2026-03-01 12:00:00", None]),
    "zoned": (pd.to_datetime([NOON]).tz_localize("Asia/Tokyo"), "timestamp", ["2026-02-28 19:00:00"]),
    "twice": (pd.to_datetime(["2026-11-01 01:30"]), "timestamp", ["2026-11-01 01:30:00"]),
    "lists and dictionaries": ([[{"a": 1}], None], "array<struct<a:bigint>>", [[(1,)], None]),
    "bytes": ([b"a", None], "binary", [bytearray(b"a"), None]),
    "no object": (pd.Series([], dtype=object), "string", []),
    "no number": (pd.Series([], dtype="uint64"), "decimal(20,0)", []),
}


@pytest.mark.parametrize("case", PANDAS)
def test_a_column_of_pandas_keeps_its_values(spark: SparkSession, case: str) -> None:
    column, kind, values = PANDAS[case]
    assert stored(spark, pd.DataFrame({"c": column})) == (
        f"struct<c:{kind}>",
        sorted([(value,) for value in values], key=repr),  # type: ignore[attr-defined]
    )


def test_nulls_take_the_type_that_the_table_has(spark: SparkSession) -> None:
    rows = pd.DataFrame({"ID": [None], "tags": [[None]], "more": [None]})
    assert stored(spark, rows, "id bigint, tags array<int>") == (
        "struct<ID:bigint,tags:array<int>,more:string>",
        [(None, [None], None)],
    )


def test_names_of_pandas_columns_become_text(spark: SparkSession) -> None:
    rows = pd.DataFrame([[1, 2, 3]], columns=[0, "a.b", "c`d"])
    assert to_frame(spark, rows).columns == ["0", "a.b", "c`d"]


def test_few_rows_are_one_partition(spark: SparkSession) -> None:
    parts = to_frame(spark, ARROW).selectExpr("spark_partition_id() as part").distinct().count()
    assert parts == 1


# Errors


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (None, "returned None"),
        (7, "returned int"),
        ([(1,)], "returned list"),
        (pd.Series([1]), "returned Series"),
        (pl.Series([1]), "returned Series"),
        (pa.chunked_array([[1]]), "returned ChunkedArray"),
        (pd.DataFrame({"a": [1, "x"]}), "column `a` .* one type"),
        (pd.DataFrame({"a": [2**70]}), "column `a`"),
        (pd.DataFrame({"a": [1j]}), "column `a`"),
        (pd.DataFrame({"a": pd.period_range("2026", periods=1, freq="M")}), "column `a` .* cannot hold"),
        (pd.DataFrame({"a": [datetime.timedelta(1)]}), "column `a` .* cannot hold"),
        (pa.table({"a": pa.array([datetime.time(1)])}), "column `a` .* cannot hold"),
        (pa.table({"a": pa.array([[datetime.time(1)]])}), "column `a` .* cannot hold"),
        (pa.table({"a": pa.array([[1]], pa.list_(pa.time32("s")))}), "column `a` .* time32.* cannot hold"),
        (pa.table({"a": pa.array([1], pa.duration("s")).dictionary_encode()}), "column `a` .* cannot hold"),
        (pa.table({"a": pa.array([(1, 2, 3)], pa.month_day_nano_interval())}), "column `a` .* cannot hold"),
        (pa.table({"a": pa.array([DECIMAL], pa.decimal256(40, 2))}), "column `a` .* decimal256.* cannot hold"),
        (duckdb.sql("select 170141183460469231731687303715884105727::hugeint as a").to_arrow_table(), "column `a` "),  # type: ignore[union-attr]
        (pl.DataFrame({"a": pl.Series([object()], dtype=pl.Object)}), "column `a` .* Object, .* cannot hold"),
        (pl.DataFrame({"a": pl.Series([2**100], dtype=pl.Int128)}), "column `a` .* Int128, .* cannot hold"),
        (pl.DataFrame({"a": pl.Series([[2**100]], dtype=pl.List(pl.Int128))}), "column `a` .* cannot hold"),
        (pa.table({"a": OPAQUE}), "column `a` .* cannot hold"),
        (pa.table({"a": pa.array([DECIMAL], pa.decimal256(50, 2))}), "column `a` .* cannot hold"),
        (pd.DataFrame([[1, 2]], columns=["a", "A"]), "`a`, `A`"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "`a`, `a`"),
        (pa.table([[1], [2]], names=["a", "a"]), "`a`, `a`"),
        (pd.DataFrame([[1]], columns=[None]), "without a name"),
        (pd.DataFrame([[1]], columns=[("a", "b")]), "several levels"),
        (pd.DataFrame(), "no columns"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_values_that_cannot_be_stored_raise_an_error_that_names_them(
    spark: SparkSession, rows: Any, message: str
) -> None:
    with pytest.raises(DbtRuntimeError, match=message):
        to_frame(spark, rows)


def test_two_spark_columns_with_the_same_name_raise_an_error(spark: SparkSession) -> None:
    with pytest.raises(DbtRuntimeError, match="`id`, `ID`"):
        to_frame(spark, spark.range(1).selectExpr("id", "id as ID"))


def test_times_in_structs_and_lists_are_in_the_zone_of_the_session(spark: SparkSession) -> None:
    missing = datetime.datetime(2024, 3, 31, 2, 30)
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        kind, rows = stored(spark, pa.table({"at": [missing], "all": [{"of": [missing]}]}))
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)  # type: ignore[arg-type]
    assert kind == "struct<at:timestamp,all:struct<of:array<timestamp>>>"
    assert rows == [("2024-03-31 03:30:00", "{[2024-03-31 03:30:00]}")]
