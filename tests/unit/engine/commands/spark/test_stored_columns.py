"""Spark compares floating-point values itself, without push-down, and keeps push-down for all other columns."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from dbt.adapters.silt.engine.commands.spark.stored_columns import float_paths, without_pushdown

ZEROS = "if(id % 2 = 0, -0.0D, double(id))"
QUERY = (
    f"select id, {ZEROS} as d, cast({ZEROS} as float) as f, array({ZEROS}) as l,"
    f" named_struct('n', id, 'a.b', {ZEROS}, 't', named_struct('x', cast({ZEROS} as float), 'y', id)) as `s s`"
    " from range(0, 20, 1, 1)"
)


@pytest.fixture
def files(spark: SparkSession, tmp_path: Path) -> DataFrame:
    folder = str(tmp_path / "files")
    spark.sql(QUERY).write.parquet(folder)
    return spark.read.parquet(folder)


def shielded(files: DataFrame) -> DataFrame:
    return without_pushdown(files, files.schema, tuple(float_paths(files.schema)))


def plan(rows: DataFrame, condition: str, columns: str, name: str) -> str:
    rows.createOrReplaceTempView(name)
    return str(rows.sparkSession.sql(f"explain select {columns} from {name} where {condition}").collect()[0][0])


@pytest.mark.parametrize("column", ["d", "f", "`s s`.`a.b`", "`s s`.t.x"])
@pytest.mark.parametrize("condition", ["= 0", "in (0.0D)", "<=> 0.0D"])
def test_a_zero_is_found_whatever_its_sign(files: DataFrame, column: str, condition: str) -> None:
    files.createOrReplaceTempView("files")
    shielded(files).createOrReplaceTempView("shielded")
    assert counts(files.sparkSession, f"{column} {condition}") == (0, 10)


def test_the_value_of_a_subquery_is_not_pushed_down_either(files: DataFrame) -> None:
    files.createOrReplaceTempView("files")
    shielded(files).createOrReplaceTempView("shielded")
    assert counts(files.sparkSession, "d = (select max(x) from values (0.0D) t(x))") == (0, 10)


def counts(spark: SparkSession, condition: str) -> tuple[int, int]:
    """Returns the number of rows that Spark finds by itself, and that it finds in columns without push-down."""
    plain, other = (spark.sql(f"select * from {name} where {condition}").count() for name in ("files", "shielded"))
    return plain, other


def test_rows_and_columns_are_unchanged(spark: SparkSession, files: DataFrame) -> None:
    extremes = "values (double('NaN')), (double('-Infinity')), (-0.0D), (0.0D), (4.9E-324D), (null) t(d)"
    numbers = spark.sql(f"select d, cast(d as float) f, named_struct('d', d) s from {extremes}")
    for rows in (files, numbers):
        assert shielded(rows).schema == rows.schema
        assert list(map(repr, shielded(rows).collect())) == list(map(repr, rows.collect()))
    signs = [math.copysign(1, row.d) for row in shielded(numbers).where("d = 0").select("d").collect()]
    assert sorted(signs) == [-1, 1]


def test_the_comment_of_a_struct_field_is_kept(spark: SparkSession, tmp_path: Path) -> None:
    folder = str(tmp_path / "described")
    spark.sql("select named_struct('n', 1, 'd', -0.0D) as s").write.parquet(folder)
    schema = StructType.fromDDL("s struct<n: int, d: double comment 'inside'> comment 'outside'")
    rows = spark.read.schema(schema).parquet(folder)  # type: ignore[arg-type]
    assert shielded(rows).schema == rows.schema
    assert shielded(rows).where("s.d = 0").count() == 1


def test_conditions_on_other_columns_and_fields_are_still_pushed_down(files: DataFrame) -> None:
    shown = plan(shielded(files), "id = 2 and d = 0 and `s s`.n = 2", "`s s`.t.y", "shielded")
    pushed = shown[shown.index("PushedFilters") : shown.index("ReadSchema")]
    assert all(each in pushed for each in ("EqualTo(id,2)", "EqualTo(`s s`.n,2)")), shown
    assert "0.0" not in pushed
    assert shown[shown.index("ReadSchema") :].split()[1:] == [
        "struct<id:bigint,d:double,s",
        "s:struct<n:bigint,t:struct<y:bigint>>>",
    ]


def test_the_cost_grows_linearly_with_the_fields_of_a_struct(spark: SparkSession) -> None:
    members = ", ".join(f"'m{at}', double(id)" for at in range(60))
    rows = spark.sql(f"select named_struct({members}) as s from range(3)")
    assert shielded(rows).where("s.m59 = 1").count() == 1


def test_columns_that_are_not_named_are_unchanged(files: DataFrame) -> None:
    assert without_pushdown(files, files.schema, ()) is files
