"""A predicate as text for Spark: true for each row for which the predicate is true."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.kernel.table.expressions import (
    FALSE,
    TRUE,
    UNKNOWN,
    And,
    Column,
    Comparison,
    Expression,
    In,
    IsNotNull,
    IsNull,
    Not,
    Or,
    Value,
    evaluate,
)
from dbt.adapters.silt.engine.sql.conditions.condition_text import condition_text

K = Column.of("k e`y")
VALUES: dict[str, tuple[Value, Value]] = {
    "bigint": (-(2**63), 2**63 - 1),
    "boolean": (False, True),
    "string": ("it's a \\ 'text'", "ü"),
    "decimal(38, 10)": (Decimal("-1E-10"), Decimal("12345678901234567890.5")),
    "date": (date(1, 1, 1), date(9999, 12, 31)),
    "timestamp": (
        datetime(1969, 12, 31, 23, 59, 59, 999_999, timezone.utc),
        datetime(2026, 3, 29, 3, tzinfo=timezone(timedelta(hours=2))),
    ),
    "timestamp_ntz": (datetime(1582, 10, 1, 0, 0, 0, 1), datetime(9999, 12, 31, 23, 59, 59)),
}


@pytest.mark.parametrize("kind", VALUES)
def test_each_literal_is_the_value(spark: SparkSession, kind: str) -> None:
    least, greatest = VALUES[kind]
    tests = [Comparison("=", K, least), In(K, (greatest,)), Comparison("<", K, greatest), Comparison(">=", K, greatest)]
    texts = [condition_text(each, "t") for each in tests]  # type: ignore[arg-type]
    for value in (least, greatest):
        literal = condition_text(Comparison("=", K, value), "t").partition(" = ")[2]
        rows = f"(select cast({literal} as {kind}) as `k e``y`) as t"
        found = spark.sql(f"select {', '.join(texts)} from {rows}").collect()[0]
        assert tuple(found) == tuple(evaluate(each, {"k e`y": value}) for each in tests)  # type: ignore[arg-type]


def test_a_part_without_text_excludes_no_row() -> None:
    few, many = In(K, (1, None)), In(K, tuple(range(11)))
    texts: dict[str, Expression] = {
        "true": And((UNKNOWN, TRUE, many, Comparison("=", K, 0.5), Not(FALSE), In(K, (b"x", 1)))),
        "(t.`k e``y` in (1))": And((few, UNKNOWN)),
        "(t.`k e``y` is null or (t.`k e``y` >= 1 and t.`k e``y` <= 5))": Or(
            (IsNull(K), And((Comparison(">=", K, 1), Comparison("<=", K, 5))))
        ),
        "(false or t.`k e``y` is not null)": Or((FALSE, IsNotNull(K))),
    }
    assert list(texts) == [condition_text(each, "t") for each in texts.values()]
    assert condition_text(Or((IsNull(K), many)), "t") == "true"
