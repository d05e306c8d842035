"""Partition values of each type in tables of other writers: how they are read, and how they skip files."""

from __future__ import annotations

import math
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.silt.engine.commands.reading import scan
from dbt.adapters.silt.engine.commands.reading.positions import FILE
from dbt.adapters.silt.engine.kernel.errors import CorruptLogError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.scan import skipping
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, Metadata, Protocol, serialize
from dbt.adapters.silt.engine.kernel.table.expressions import Column, Comparison, IsNull
from dbt.adapters.silt.engine.kernel.table.paths import commit_path, encode_path
from dbt.adapters.silt.engine.kernel.table.schema import DataType, DecimalType, PrimitiveType, StructField, StructType
from tests.unit.engine.commands.spark_tables import Tables

UTC = timezone.utc
NOON = datetime(2024, 7, 1, 12, 0, 0, 250_000)

# By type: strings of the log, and their values.
VALUES: dict[str, dict[str | None, Any]] = {
    "byte": {"-128": -128, "7": 7},
    "short": {"-300": -300},
    "integer": {"2147483647": 2_147_483_647},
    "long": {"-9223372036854775808": -(2**63)},
    "float": {"1.5": 1.5, "Infinity": math.inf, "-1.0E20": -1.0000000200408773e20},
    "double": {"0.1": 0.1, "1.0E20": 1e20, "-Infinity": -math.inf},
    "decimal(10,2)": {"12.50": Decimal("12.50"), "-0.01": Decimal("-0.01")},
    "boolean": {"true": True, "false": False},
    "string": {"a b/c%": "a b/c%", "__HIVE_DEFAULT_PARTITION__": "__HIVE_DEFAULT_PARTITION__", " ": " ", "é🦀": "é🦀"},
    "binary": {"abc\x01": b"abc\x01"},
    "date": {"2024-02-29": date(2024, 2, 29), "0001-01-01": date(1, 1, 1)},
    "timestamp": {
        "2024-07-01T12:00:00.250000Z": NOON.replace(tzinfo=UTC),
        "2024-07-01 12:00:00.25": NOON.replace(tzinfo=UTC),
        "2024-07-01T14:00:00.250000+02:00": NOON.replace(tzinfo=UTC),
    },
    "timestamp_ntz": {"2024-07-01 12:00:00.25": NOON, "2024-07-01T12:00:00.250000": NOON},
}
COMPARED = [name for name in VALUES if name != "binary"]


def kind(name: str) -> DataType:
    return DecimalType(10, 2) if name == "decimal(10,2)" else PrimitiveType(name)


def rows_of(name: str, count: int) -> list[tuple[str | None, Any]]:
    """Returns so many strings of a type with their values; null and the empty string are among them."""
    known = [*VALUES[name].items(), (None, None), ("", None)]
    return [known[number % len(known)] for number in range(count)]


def other_writers_table(tables: Tables, count: int) -> tuple[DeltaLog, list[dict[str, Any]]]:
    """Creates a file for each row, with one partition column of each type; every other file stores some of them as
    well.
    """
    log = tables.log("theirs")
    texts = {name: rows_of(name, count) for name in VALUES}
    fields = [StructField("id", PrimitiveType("long")), *(StructField(f"p {n}", kind(n)) for n in VALUES)]
    names = tuple(field.name for field in fields[1:])
    actions: list[Any] = [Protocol(3, 7, ("timestampNtz",), ("timestampNtz",))]
    actions.append(Metadata("id", StructType(tuple(fields)).to_json(), names))
    expected = []
    for number in range(count):
        data = {"id": [number]} | ({} if number % 2 else {"p long": [texts["long"][number][1]]})
        name = f"part {number}%.parquet"
        file = pa.BufferOutputStream()
        pq.write_table(pa.table({k: pa.array(v, pa.int64()) for k, v in data.items()}), file)
        log.store.put(name, file.getvalue().to_pybytes())
        values = {f"p {each}": texts[each][number][0] for each in VALUES}
        actions.append(AddFile(encode_path(name), values, file.getvalue().size, 0, stats='{"numRecords":1}'))
        expected.append({"id": number} | {f"p {each}": texts[each][number][1] for each in VALUES})
    log.store.put_if_absent(commit_path(0), serialize(actions))
    return log, expected


@pytest.mark.parametrize("count", [5, 25])
def test_partition_values_of_every_type_are_read_as_literals_and_by_a_join(tables: Tables, count: int) -> None:
    log, expected = other_writers_table(tables, count)
    found = tables.read(log).orderBy("id").toArrow().to_pylist()
    assert found == expected
    positions = scan.read(tables.spark, log, log.snapshot(), with_position=True)
    assert positions.select("id", FILE).distinct().count() == count


@pytest.mark.parametrize("name", COMPARED)
def test_a_file_with_a_matching_partition_value_is_never_skipped(tables: Tables, name: str) -> None:
    log, expected = other_writers_table(tables, 5)
    snapshot, column = log.snapshot(), Column.of(f"p {name}")
    for value in VALUES[name].values():
        not_skipped = set(skipping.prune(snapshot, Comparison("=", column, value))["path"].to_pylist())
        matching = {encode_path(f"part {row['id']}%.parquet") for row in expected if row[f"p {name}"] == value}
        assert matching <= not_skipped
    nulls = {encode_path(f"part {row['id']}%.parquet") for row in expected if row[f"p {name}"] is None}
    assert nulls <= set(skipping.prune(snapshot, IsNull(column))["path"].to_pylist())


DAMAGED = {
    "byte": "300",
    "integer": "abc",
    "long": "1.5",
    "double": "x",
    "decimal(10,2)": "-1.-50",
    "boolean": "maybe",
    "date": "2024-13-01",
    "timestamp": "yesterday",
    "timestamp_ntz": "12 o'clock",
}


def table_of(tables: Tables, name: str, text: str, files: int = 1) -> DeltaLog:
    """Creates a table with a partition column `p`, whose last file has the given value."""
    log = tables.log("theirs")
    fields = (StructField("id", PrimitiveType("long")), StructField("p", kind(name)))
    known = next(iter(VALUES[name]))
    actions: list[Any] = [Protocol(3, 7, ("timestampNtz",), ("timestampNtz",))]
    actions.append(Metadata("id", StructType(fields).to_json(), ("p",)))
    for number in range(files):
        file = pa.BufferOutputStream()
        pq.write_table(pa.table({"id": pa.array([number], pa.int64())}), file)
        log.store.put(f"{number}.parquet", file.getvalue().to_pybytes())
        given = text if number == files - 1 else known
        actions.append(AddFile(f"{number}.parquet", {"p": given}, file.getvalue().size, 0, stats='{"numRecords":1}'))
    log.store.put_if_absent(commit_path(0), serialize(actions))
    return log


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("name", DAMAGED)
def test_a_string_that_is_no_value_of_the_column_is_not_read_as_null(tables: Tables, name: str, ansi: str) -> None:
    log = table_of(tables, name, DAMAGED[name], files=2)
    spark = tables.spark.newSession()
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    with pytest.raises(CorruptLogError) as raised:
        scan.read(spark, log, log.snapshot()).collect()
    said = str(raised.value)
    assert "@v0: the data file 1.parquet: " in said
    assert f"`{DAMAGED[name]}` is not a value of the partition column `p` of type {kind(name).sql_name}" in said
    assert raised.value.table == log.name


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("date", "2024-1-2", date(2024, 1, 2)),
        ("date", "2024-01-02 00:00:00", date(2024, 1, 2)),
        ("double", "NaN", math.nan),
        ("decimal(10,2)", "1.505", Decimal("1.51")),
        ("boolean", "T", True),
    ],
)
def test_a_string_that_only_spark_converts_is_read(tables: Tables, name: str, text: str, value: Any) -> None:
    found = tables.read(table_of(tables, name, text)).collect()[0].p
    assert found == value or (math.isnan(found) and math.isnan(value))
