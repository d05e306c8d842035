"""Which values of fixtures fit their types."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import types as T

from dbt.adapters.silt.materializations.unit_tests.literals import NO_FIELD, Cell, cells, fits

MONEY = T.DecimalType(10, 3)
UTC = datetime.timezone.utc
NIGHT = datetime.datetime(2024, 1, 1)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (127, T.ByteType()),
        (" -128 ", T.ByteType()),
        (2.0, T.IntegerType()),
        (True, T.IntegerType()),
        ("9223372036854775807", T.LongType()),
        (0.333, MONEY),
        ("0.3330", MONEY),
        ("1e3", MONEY),
        (Decimal("-9999999.999"), MONEY),
        (0.1, T.FloatType()),
        ("1.5d", T.DoubleType()),
        ("NaN", T.DoubleType()),
        ("-Infinity", T.FloatType()),
        (float("inf"), T.DoubleType()),
        (1e38, T.FloatType()),
        ("0.12345678901234567890", T.DoubleType()),
        (" YES ", T.BooleanType()),
        (1, T.BooleanType()),
        (NIGHT, T.DateType()),
        (1700000000, T.TimestampType()),
        ("2024-01-01 10:00:00.1234560", T.TimestampType()),
        ("2024-01-01T10:00:00+05:00", T.TimestampType()),
        (NIGHT.replace(tzinfo=UTC), T.TimestampType()),
        ("2024-01-01 10:00", T.TimestampNTZType()),
        ("ab   ", T.VarcharType(2)),
        ("a", T.CharType(2)),
        ({"a": 1}, T.VariantType()),
        (3, T.DayTimeIntervalType(0, 0)),
        (1.5, T.DayTimeIntervalType(3, 3)),
    ],
)
def test_a_value_fits_its_type(value: Any, kind: T.DataType) -> None:
    assert fits(Cell("c", value, kind))


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (128, T.ByteType()),
        (1.7, T.IntegerType()),
        ("1.0", T.IntegerType()),
        ("1_000", T.LongType()),
        ("9223372036854775808", T.LongType()),
        ("", T.IntegerType()),
        (float("nan"), T.IntegerType()),
        (0.3333, MONEY),
        ("twelve", MONEY),
        ("12345678", MONEY),
        ("NaN", MONEY),
        ("1e99999", MONEY),
        ("1e39", T.FloatType()),
        ("1e-60", T.FloatType()),
        (16777217, T.FloatType()),
        ("1e400", T.DoubleType()),
        (9007199254740993, T.DoubleType()),
        ("1_0.5", T.DoubleType()),
        (2, T.BooleanType()),
        ("maybe", T.BooleanType()),
        (NIGHT.replace(hour=1), T.DateType()),
        (7, T.DateType()),
        (True, T.TimestampType()),
        (7, T.TimestampNTZType()),
        ("2024-01-01 10:00:00.1234567", T.TimestampNTZType()),
        ("2024-01-01 10:00:00 Europe/Berlin", T.TimestampNTZType()),
        ("2024-01-01T10:00Z", T.TimestampNTZType()),
        (NIGHT.replace(tzinfo=UTC), T.TimestampNTZType()),
        (5, T.BinaryType()),
        ("abc", T.VarcharType(2)),
        ([1], T.StringType()),
        ({"a": 1}, T.StringType()),
        ("[1]", T.ArrayType(T.IntegerType())),
        ([1], T.StructType([T.StructField("a", T.IntegerType())])),
        (1.7, T.DayTimeIntervalType(0, 0)),
        (5, T.DayTimeIntervalType(0, 3)),
        (1.5, T.YearMonthIntervalType(1, 1)),
        (1, NO_FIELD),
    ],
)
def test_a_value_that_the_cast_would_turn_into_null_or_another_value_does_not_fit(value: Any, kind: T.DataType) -> None:
    assert not fits(Cell("c", value, kind))


def test_each_part_of_a_nested_value_is_named_by_its_path() -> None:
    pair = T.StructType([T.StructField("A", T.IntegerType()), T.StructField("b", T.DateType())])
    kind = T.MapType(T.StringType(), T.ArrayType(pair))
    found = list(cells("m", {"k": [{"a": 1, "z": 2}, None, 3]}, kind))
    assert found == [
        Cell("m.key", "k", T.StringType()),
        Cell('m["k"][0].a', 1, T.IntegerType()),
        Cell('m["k"][0].z', 2, NO_FIELD),
        Cell('m["k"][2]', 3, pair),
    ]
