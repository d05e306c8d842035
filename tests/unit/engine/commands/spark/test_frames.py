"""Rows of this process become rows of Spark."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.commands.spark.frames import frame_of_rows

LOCAL = pa.timestamp("us")
TIMES = [
    datetime(2024, 3, 31, 2, 30),  # missing in Berlin
    datetime(2024, 10, 27, 2, 30),  # twice in Berlin
    datetime(1890, 1, 1, 3, 4, 5, 6),
    datetime(1, 1, 1),
    datetime(9999, 12, 31, 1),
    None,
]
SOME_TIME = datetime(2000, 1, 1)
NESTED = {
    "at": (pa.array(TIMES, LOCAL), "at"),
    "struct": (pa.array([{"a`t": each} for each in TIMES], pa.struct([("a`t", LOCAL)])), "struct.`a``t`"),
    "list": (pa.array([[each] for each in TIMES], pa.list_(LOCAL)), "list[0]"),
    "map": (pa.array([[(SOME_TIME, each)] for each in TIMES], pa.map_(LOCAL, LOCAL)), "map_values(map)[0]"),
}


@pytest.fixture(params=["Europe/Berlin", "America/St_Johns", "UTC", "+02:00", "UTC+08:00", "GMT+2", "Z"])
def zoned(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield spark
    spark.conf.set("spark.sql.session.timeZone", before)  # type: ignore[arg-type]


def test_times_without_a_zone_are_read_as_spark_sql_reads_them(zoned: SparkSession) -> None:
    frame = frame_of_rows(zoned, pa.table({name: column for name, (column, _) in NESTED.items()}))
    assert frame.schema.simpleString() == (
        "struct<at:timestamp,struct:struct<a`t:timestamp>,list:array<timestamp>,map:map<timestamp,timestamp>>"
    )
    literals = ", ".join("(null)" if each is None else f"(timestamp_ntz'{each.isoformat(' ')}')" for each in TIMES)
    of_spark = zoned.sql(f"select cast(wall as timestamp) as at from values {literals} as walls(wall)")
    expected = [each[0] for each in of_spark.selectExpr("unix_micros(at)").collect()]
    for name, (_, value) in NESTED.items():
        assert [each[0] for each in frame.selectExpr(f"unix_micros({value})").collect()] == expected, name


def test_times_without_a_zone_have_no_zone_if_the_session_says_so(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    try:
        frame = frame_of_rows(spark, pa.table({"at": NESTED["at"][0]}))
    finally:
        spark.conf.unset("spark.sql.timestampType")
    assert frame.schema.simpleString() == "struct<at:timestamp_ntz>"


@pytest.mark.parametrize("name", NESTED)
def test_a_table_without_rows_has_the_types_of_its_columns(spark: SparkSession, name: str) -> None:
    rows = pa.table({name: NESTED[name][0]})
    empty = frame_of_rows(spark, rows.slice(0, 0))
    assert (empty.schema, empty.count()) == (frame_of_rows(spark, rows).schema, 0)
