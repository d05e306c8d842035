"""Rows of any type are compared as SQL."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.materializations.row_comparison import rows_differ


@pytest.mark.parametrize(
    ("stored", "given", "differ"),
    [
        ("1", "1", False),
        ("1", "2", True),
        ("cast(null as int)", "1", True),
        ("1", "cast(null as int)", True),
        ("cast(null as int)", "cast(null as int)", False),
        ("'1'", "1", False),
        ("1", "'one'", True),
        ("cast(null as int)", "'one'", True),
        ("cast(1.10 as decimal(10, 2))", "cast(1.1 as decimal(3, 1))", False),
        ("map('a', 1, 'b', 2)", "map('b', 2, 'a', 1)", False),
        ("map('a', 1, 'b', 2)", "map('a', 1, 'b', 3)", True),
        ("cast(null as map<string, int>)", "map('a', 1)", True),
        ("array(map(1, map('x', 2, 'y', 3)))", "array(map(1, map('y', 3, 'x', 2)))", False),
        ("array(map(1, map('x', 2, 'y', 3)))", "array(map(1, map('y', 3, 'x', 4)))", True),
        ("named_struct('a b', map(1, 2))", "named_struct('a b', map(1, cast(null as int)))", True),
        ("cast(null as struct<m: map<int, int>>)", "named_struct('m', cast(null as map<int, int>))", True),
        ('parse_json(\'{"b": 1, "a": [2]}\')', 'parse_json(\'{"a": [2], "b": 1}\')', False),
        ("parse_json('{\"a\": 1}')", "parse_json('{\"a\": 2}')", True),
        ("array(1, null)", "array(1, null)", False),
    ],
)
def test_values_of_any_type_are_compared(spark: SparkSession, stored: str, given: str, differ: bool) -> None:
    table = spark.sql(f"select {stored} as v")
    query = spark.sql(f"select {given} as V")
    condition = rows_differ("q", query.schema, "t", table.schema)
    assert [row[0] for row in table.alias("t").join(query.alias("q")).selectExpr(condition).collect()] == [differ]


def test_a_column_that_the_table_lacks_makes_every_row_differ(spark: SparkSession) -> None:
    both, one = spark.sql("select 1 as a, 2 as b").schema, spark.sql("select 1 as A").schema
    assert rows_differ("q", both, "t", one) == "true"
    assert rows_differ("q", one, "t", both) != "true"
