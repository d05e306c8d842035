"""Store assignment: values are converted without loss, or counted as lost."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.spark.types import kernel_schema, spark_schema
from dbt.adapters.silt.engine.commands.writing.store_assignment import Assigned, assign, evolve
from dbt.adapters.silt.engine.kernel.errors import TypeMismatchError
from dbt.adapters.silt.engine.kernel.table.schema import StructType


def schema(spark: SparkSession, columns: str) -> StructType:
    return kernel_schema(spark.createDataFrame([], columns).schema)


def lost(assigned: Assigned) -> list[int]:
    """Returns the number of lost values of each check."""
    if not assigned.checks:
        return []
    row = assigned.df.select(*(F.count_if(check.violation) for check in assigned.checks)).first()
    return list(row) if row is not None else []


def stored(spark: SparkSession, value: str, column_type: str) -> tuple[object, list[int]]:
    """Returns the value in the column, and the numbers of lost values."""
    assigned = assign(spark.sql(f"select {value} v"), schema(spark, f"c {column_type}"), "t")
    (row,) = assigned.df.select("c").toArrow().to_pylist()
    return row["c"], lost(assigned)


def test_columns_of_the_right_type_are_unchanged(spark: SparkSession) -> None:
    frame = spark.sql("select id, 'a' name from range(3)")
    assigned = assign(frame, schema(spark, "id long, name string"), "t")
    assert assigned.df is frame
    assert assigned.checks == ()


@pytest.mark.parametrize(
    ("value", "column_type", "expected"),
    [
        ("1", "long", 1),
        ("1.9D", "int", 1),
        ("cast(1.255 as decimal(5,3))", "decimal(5,2)", None),
        ("5", "string", "5"),
        ("true", "string", "true"),
        ("null", "int", None),
        ("'12'", "int", 12),
        ("array(1, null)", "array<long>", [1, None]),
        ("array('1', '2')", "array<int>", [1, 2]),
        ("map('a', 1)", "map<string, string>", [("a", "1")]),
        ("named_struct('x', 1, 'y', '2')", "struct<a: long, b: int>", {"a": 1, "b": 2}),
        ("cast(null as struct<x: int>)", "struct<a: long>", None),
        ("array(named_struct('x', '7'))", "array<struct<a: int>>", [{"a": 7}]),
    ],
)
def test_values_are_converted_without_loss(spark: SparkSession, value: str, column_type: str, expected: object) -> None:
    found, losses = stored(spark, value, column_type)
    if expected is not None:
        assert found == expected
    assert sum(losses) == 0


@pytest.mark.parametrize(
    ("value", "column_type"),
    [
        ("'x'", "int"),
        ("'1.5'", "int"),
        ("'maybe'", "boolean"),
        ("'2024-02-30'", "date"),
        ("300", "tinyint"),
        ("9999999999L", "int"),
        ("1e300D", "long"),
        ("cast(12345 as decimal(5,0))", "decimal(5,2)"),
        ("array(1L, 9999999999L)", "array<int>"),
        ("map('a', 'x')", "map<string, int>"),
        ("named_struct('x', 'no')", "struct<a: int>"),
        ("array(named_struct('x', 'no'), null)", "array<struct<a: int>>"),
    ],
)
def test_every_loss_is_counted_with_and_without_ansi_mode(spark: SparkSession, value: str, column_type: str) -> None:
    for ansi in ("true", "false"):
        spark.conf.set("spark.sql.ansi.enabled", ansi)
        try:
            assert stored(spark, value, column_type)[1] == [1]
        finally:
            spark.conf.unset("spark.sql.ansi.enabled")


@pytest.mark.parametrize(
    ("value", "column_type"),
    [
        ("1", "boolean"),
        ("true", "int"),
        ("1", "date"),
        ("current_date()", "int"),
        ("array(1)", "int"),
        ("1", "array<int>"),
        ("named_struct('x', 1)", "struct<a: int, b: int>"),
        ("map(1, 2)", "array<int>"),
        ("array(true)", "array<date>"),
        ("X'00'", "int"),
    ],
)
def test_incompatible_types_are_named(spark: SparkSession, value: str, column_type: str) -> None:
    with pytest.raises(TypeMismatchError, match=r"`v` has the type .* cannot be stored in `c` of type"):
        stored(spark, value, column_type)


def test_matching_by_name_includes_struct_fields(spark: SparkSession) -> None:
    frame = spark.sql("select named_struct('b', 2, 'A', 1) S")
    assigned = assign(frame, schema(spark, "id long, s struct<a: long, b: int, c: string>"), "t", by_name=True)
    assert assigned.df.toArrow().to_pylist() == [{"id": None, "s": {"a": 1, "b": 2, "c": None}}]


def test_a_query_may_give_two_columns_the_same_name(spark: SparkSession) -> None:
    assigned = assign(spark.sql("select 1 x, 2 x"), schema(spark, "a int, b int"), "t")
    assert assigned.df.toArrow().to_pylist() == [{"a": 1, "b": 2}]


def test_char_values_are_padded_with_spaces(spark: SparkSession) -> None:
    columns = kernel_schema(spark.sql("select cast('a' as string) c").schema)
    padded = StructType(tuple(field.with_metadata(__CHAR_VARCHAR_TYPE_STRING="char(3)") for field in columns))
    assigned = assign(spark.sql("select 'a' c"), padded, "t")
    assert assigned.df.toArrow().to_pylist() == [{"c": "a  "}]


def test_evolve_adds_new_columns_at_the_end_at_every_level(spark: SparkSession) -> None:
    old = schema(spark, "id long, s struct<a: int>, l array<struct<a: int>>")
    new = schema(spark, "extra string, ID int, s struct<b: int, a: int>, l array<struct<c: date>>")
    evolved = evolve(old, new)
    expected = "id long, s struct<a: int, b: int>, l array<struct<a: int, c: date>>, extra string"
    assert spark_schema(evolved) == spark.createDataFrame([], expected).schema
    assert evolve(evolved, new) == evolved
