"""Constraints of a table are checked while rows are written."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.spark.types import kernel_schema
from dbt.adapters.silt.engine.commands.writing import checks
from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties
from dbt.adapters.silt.engine.kernel.table.schema import ArrayType, MapType, PrimitiveType, StructField, StructType

LONG = PrimitiveType("long")
STRICT = StructType((StructField("a", LONG, nullable=False),))


def broken(df: DataFrame, schema: StructType, configuration: dict[str, str] | None = None) -> list[SiltError]:
    """Returns the errors that the rows cause."""
    found = checks.table_checks(schema, TableProperties(configuration or {}), "t")
    if not found:
        return []
    counts = df.select(*(F.count_if(check.violation) for check in found)).first()
    examples = df.select(*(F.max(F.when(check.violation, check.example)) for check in found)).first()
    assert counts is not None and examples is not None
    return [check.error(count, example) for check, count, example in zip(found, counts, examples, strict=True) if count]


def test_a_table_without_constraints_has_no_checks(spark: SparkSession) -> None:
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
def test_a_violated_not_null_is_found_at_every_depth(
    spark: SparkSession, field: StructField, good: str, bad: str, name: str
) -> None:
    schema = StructType((field,))
    assert broken(spark.sql(f"select {good} x"), schema) == []
    (error,) = broken(spark.sql(f"select {bad} x union all select {good} union all select {bad}"), schema)
    assert f"2 rows have a null in the NOT NULL column `{name}`" in str(error)


def test_a_condition_that_is_null_violates_its_constraint(spark: SparkSession) -> None:
    schema = StructType((StructField("id", LONG),))
    df = spark.sql("values (1L), (-1L), (cast(null as bigint)) as t(id)")
    (error,) = broken(df, schema, {"delta.constraints.positive": "id > 0"})
    assert "2 rows break the check constraint `positive`, id > 0, for example" in str(error)


def test_an_invariant_of_a_column_is_checked(spark: SparkSession) -> None:
    invariant = json.dumps({"expression": {"expression": "id < 10"}})
    schema = StructType((StructField("id", LONG, True, {"delta.invariants": invariant}),))
    (error,) = broken(spark.sql("select id from range(12)"), schema)
    assert "2 rows break the invariant of the column `id`, id < 10" in str(error)


def test_a_string_longer_than_its_column_is_found(spark: SparkSession) -> None:
    limited = StructField("x", PrimitiveType("string"), True, {"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"})
    (error,) = broken(spark.sql("values ('äöü'), ('abcd') as t(x)"), StructType((limited,)))
    assert "1 row has a string in `x` that is longer than varchar(3), for example abcd" in str(error)


def test_an_example_starts_with_the_columns_of_the_constraint(spark: SparkSession) -> None:
    names = [f"c{at}" for at in range(10)]
    schema = StructType((*(StructField(name, LONG) for name in names), StructField("s", STRICT)))
    row = ", ".join(f"{at}L as c{at}" for at in range(10))
    (error,) = broken(
        spark.sql(f"select {row}, named_struct('a', -1L) as s"), schema, {"delta.constraints.c": "s.a > 0 or C9 < 0"}
    )
    assert 'for example {"c9":"9","s":{"a":-1},"c0":"0",' in str(error)
    assert "c6" not in str(error)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("struct<a: bigint, b: binary>", "named_struct('a', -1L, 'b', x'00')", '{"a":-1}'),
        ("struct<a: bigint, v: variant>", "named_struct('a', -1L, 'v', parse_json('1'))", '{"a":-1}'),
        ("struct<m: map<string, bigint>>", "named_struct('m', cast(map() as map<string, bigint>))", '{"m":{}}'),
        ("map<string, bigint>", "cast(map() as map<string, bigint>)", "{}"),
        ("array<struct<a: int, b: binary>>", "array(named_struct('a', 1, 'b', x'00'), null)", '[{"a":1},null]'),
        ("map<string, struct<a: int, b: binary>>", "map('k', named_struct('a', 1, 'b', x'00'))", '{"k":{"a":1}}'),
        (
            "struct<s: struct<a: int, b: binary>>",
            "named_struct('s', named_struct('a', 1, 'b', x'00'))",
            '{"s":{"a":1}}',
        ),
        ("struct<a: int, b: binary>", "null", "null"),
    ],
)
def test_an_example_omits_only_the_parts_of_a_column_that_cannot_be_shown(
    spark: SparkSession, kind: str, value: str, expected: str
) -> None:
    row = spark.sql(f"select cast({value} as {kind}) as x, x'00' as b, 1L as id")
    schema = kernel_schema(row.schema)
    (error,) = broken(row, schema, {"delta.constraints.c": "size(array(x)) > 1"})
    assert f'for example {{"x":{expected},"id":"1"}}. ' in str(error)


def test_a_constraint_is_shown_on_one_line(spark: SparkSession) -> None:
    schema = StructType(
        (
            StructField("id", LONG),
            StructField("twice", LONG, True, {"delta.generationExpression": "id\n  * 2L -- twice"}),
        )
    )
    rows = spark.sql("select 1L as id, 3L as twice")
    for error in broken(rows, schema, {"delta.constraints.c": "id > 1 -- one\n  and true"}):
        assert "\n" not in str(error)
        assert "`c`, id > 1 and true, for" in str(error) or "`twice`, `twice` <=> (id * 2L), for" in str(error)


def test_a_long_example_is_truncated() -> None:
    assert checks.shown("x" * 1000).endswith("xxx...")
    assert checks.shown(None) == ""
