"""Rules of a table are observed while rows are written."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.writing import checks
from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties
from dbt.adapters.silt.engine.kernel.table.schema import ArrayType, MapType, PrimitiveType, StructField, StructType

LONG = PrimitiveType("long")
STRICT = StructType((StructField("a", LONG, nullable=False),))


def broken(df: DataFrame, schema: StructType, configuration: dict[str, str] | None = None) -> list[SiltError]:
    """The errors that the rows raise."""
    found = checks.table_checks(schema, TableProperties(configuration or {}), "t")
    if not found:
        return []
    counts = df.select(*(F.count_if(check.violation) for check in found)).first()
    examples = df.select(*(F.max(F.when(check.violation, check.example)) for check in found)).first()
    assert counts is not None and examples is not None
    return [check.error(count, example) for check, count, example in zip(found, counts, examples, strict=True) if count]


def test_a_table_without_rules_has_no_checks(spark: SparkSession) -> None:
    schema = StructType((StructField("id", LONG),))
    assert checks.table_checks(schema, TableProperties({}), "t") == ()


@pytest.mark.parametrize(
    ("field", "good", "bad", "name"),
    [
        (StructField("x", LONG, False), "1L", "cast(null as bigint)", "x"),
        (StructField("x", STRICT), "cast(null as struct<a: bigint>)", "named_struct('a', cast(null as bigint))", "x.a"),
        (StructField("x", ArrayType(LONG, False)), "array(1L)", "array(1L, null)", "x.element"),
        (
            StructField("x", ArrayType(STRICT)),
            "array(named_struct('a', 1L), null)",
            "array(named_struct('a', cast(null as bigint)))",
            "x.element.a",
        ),
        (StructField("x", MapType(LONG, LONG, False)), "map(1L, 1L)", "map(1L, cast(null as bigint))", "x.value"),
        (
            StructField("x", MapType(LONG, STRICT)),
            "map(1L, named_struct('a', 1L))",
            "map(1L, named_struct('a', cast(null as bigint)))",
            "x.value.a",
        ),
    ],
)
def test_not_null_is_found_at_every_depth(
    spark: SparkSession, field: StructField, good: str, bad: str, name: str
) -> None:
    schema = StructType((field,))
    assert broken(spark.sql(f"select {good} x"), schema) == []
    (error,) = broken(spark.sql(f"select {bad} x union all select {good} union all select {bad}"), schema)
    assert f"2 rows have a null in the NOT NULL column `{name}`" in str(error)


def test_a_condition_that_is_null_breaks_its_constraint(spark: SparkSession) -> None:
    schema = StructType((StructField("id", LONG),))
    df = spark.sql("values (1L), (-1L), (cast(null as bigint)) as t(id)")
    (error,) = broken(df, schema, {"delta.constraints.positive": "id > 0"})
    assert "2 rows break the check constraint `positive`, id > 0, for example" in str(error)


def test_an_invariant_of_a_column_is_checked(spark: SparkSession) -> None:
    invariant = json.dumps({"expression": {"expression": "id < 10"}})
    schema = StructType((StructField("id", LONG, True, {"delta.invariants": invariant}),))
    (error,) = broken(spark.sql("select id from range(12)"), schema)
    assert "2 rows break the invariant of the column `id`, id < 10" in str(error)


def test_a_text_longer_than_its_column_is_found(spark: SparkSession) -> None:
    limited = StructField("x", PrimitiveType("string"), True, {"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"})
    (error,) = broken(spark.sql("values ('äöü'), ('abcd') as t(x)"), StructType((limited,)))
    assert "1 row has a text in `x` that is longer than varchar(3), for example abcd" in str(error)


def test_an_example_is_cut_where_it_is_long() -> None:
    assert checks.shown("x" * 1000).endswith("xxx...")
    assert checks.shown(None) == ""
