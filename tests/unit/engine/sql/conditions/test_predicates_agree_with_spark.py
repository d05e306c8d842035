"""A condition read as a predicate has Spark's outcome for every row, with and without ANSI mode."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.commands.spark.types import kernel_schema
from dbt.adapters.silt.engine.kernel.table.expressions import And, Constant, Expression, Not, Or, evaluate
from dbt.adapters.silt.engine.sql.conditions.predicates import to_predicate

ZONE = "America/Los_Angeles"
DDL = (
    "i int, l bigint, y tinyint, b boolean, s string, d date, ts timestamp, ntz timestamp_ntz, f float, x double, "
    "dec decimal(10, 2), wide decimal(38, 18), st struct<a: bigint, z: struct<c: string>>"
)
_BIG = (1 << 53) + 1


def _utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=timezone.utc)  # type: ignore[arg-type, misc]


COLUMNS: dict[str, tuple[Any, ...]] = {
    "i": (None, 1, 2, -(1 << 31), 0, 2),
    "l": (None, 1, _BIG, -_BIG, 0, (1 << 63) - 1),
    "y": (None, 1, -1, 127, 0, -128),
    "b": (None, True, False, None, True, False),
    "s": (None, "a", "", "ab%", "it's", "é"),
    "d": (None, date(2024, 1, 1), date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31), date(2023, 12, 31)),
    "ts": (
        None,
        _utc(2024, 1, 1, 8),
        _utc(2024, 1, 1),
        _utc(2024, 7, 1, 12, 30),
        _utc(2024, 1, 1, 7, 59, 59, 999999),
        _utc(2024, 3, 10, 10, 30),
    ),
    "ntz": (
        None,
        datetime(2024, 1, 1),
        datetime(2024, 1, 1, 12),
        datetime(2024, 7, 1, 0, 0, 0, 5),
        datetime(2023, 12, 31),
        datetime(2024, 3, 10, 2, 30),
    ),
    "f": (None, 1.5, float("nan"), 1.100000023841858, -0.0, float("inf")),
    "x": (None, 1.5, float("nan"), 1.1, -0.0, float("-inf")),
    "dec": (None, *map(Decimal, ("1.25", "-1.00", "99999999.99", "0.00", "1.20"))),
    "wide": (None, *map(Decimal, ("1.5", "1e19", "-0.000000000000000001", "0", "2"))),
    "st": (
        None,
        {"a": 1, "z": {"c": "x"}},
        {"a": None, "z": None},
        {"a": 2, "z": {"c": "y"}},
        None,
        {"a": 0, "z": {"c": ""}},
    ),
}
ROWS = [dict(zip(COLUMNS, values, strict=True)) for values in zip(*COLUMNS.values(), strict=True)]
_LITERALS = {
    "i": ("1", "-1", "2L", "1.0", "1.5", "-0.5", "2e0", "1D", "0.99BD", "2147483647", "+2", "1S"),
    "l": ("1", "9007199254740992", "9007199254740993", "9007199254740991D", "9223372036854775807", "1.5", "0.0"),
    "y": ("1", "127", "-128", "0.5", "1e0"),
    "b": ("true", "false"),
    "s": ("'a'", "''", "'ab'", "'ab%'", "'é'"),
    "d": ("'2024-01-01'", "date'2024-02-29'", "cast('0001-01-01' as date)", "'9999-12-31'::date"),
    "ts": (
        "'2024-01-01'",
        "'2024-01-01 00:00:00'",
        "timestamp'2024-01-01 00:00:00'",
        "'2024-07-01 05:30:00'",
        "'2023-12-31T23:59:59.999999'",
        "'2024-01-01 00:00:00Z'",
        "timestamp'2024-01-01 03:00:00+03:00'",
        "cast('2024-03-10 10:30:00+00:00' as timestamp)",
        "date'2024-01-01'",
    ),
    "ntz": ("'2024-01-01'", "timestamp_ntz'2024-01-01 12:00:00'", "'2024-03-10 02:30:00'", "date'2024-01-01'"),
    "f": ("1.5", "1.1", "0", "-0.0", "1e0", "16777216"),
    "x": ("1.5", "1.1", "0", "1.1D", "-0.0", "9007199254740993"),
    "dec": ("1.25", "1", "1.2", "-1.00BD", "0.001", "100000000"),
    "wide": ("1.5", "10000000000000000000", "0", "2L", "-0.1"),
    "st.a": ("1", "0.5", "2L"),
    "st.z.c": ("'x'", "''"),
}


def _conditions() -> Iterator[str]:
    for column, literals in _LITERALS.items():
        for literal in literals:
            for operator in ("=", "<=>", "<>", "<", "<=", ">"):
                yield f"{column} {operator} {literal}"
            yield f"{literal} < {column}"
            yield f"not ({column} >= {literal} or {column} is null)"
            yield f"{column} in ({literal}, null)"
            yield f"{column} not in ({literal})"
            yield f"{column} not between {literal} and {literals[0]}"
            yield f"{column} is distinct from {literal}"
        yield f"{column} is null"
        yield f"{column} = null or {column} is not null"
        yield f"{column} <=> null"
    yield from ("b", "not b", "b and i = 1", "!b or l > 5", "i = 1 or l = 1 and b", "not i = 1 and b")
    yield from ("s like 'a%'", "s like 'ab%'", "s like 'a'", "s not like 'a%'", "s like 'it%'", "s like 'é%'")


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_the_predicate_of_a_condition_has_sparks_outcome_for_every_row(spark: SparkSession, ansi: str) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", ZONE)
    session.conf.set("spark.sql.ansi.enabled", ansi)
    frame = session.createDataFrame([tuple(row.values()) for row in ROWS], DDL)
    schema = kernel_schema(frame.schema)
    read = {text: to_predicate(text, schema, [], ZONE) for text in _conditions()}
    known = {text: predicate for text, predicate in read.items() if not _has_unknown(predicate)}
    assert len(known) > 0.8 * len(read)
    answers = frame.selectExpr(f"array({', '.join(f'({text})' for text in known)}) as answers").collect()
    wrong = [
        (text, index, answer[0][number])
        for index, answer in enumerate(answers)
        for number, (text, predicate) in enumerate(known.items())
        if evaluate(predicate, ROWS[index]) is not answer[0][number]
    ]
    assert wrong == []


def _has_unknown(expression: Expression) -> bool:
    if isinstance(expression, And | Or):
        return any(_has_unknown(part) for part in expression.parts)
    if isinstance(expression, Not):
        return _has_unknown(expression.part)
    return isinstance(expression, Constant)
