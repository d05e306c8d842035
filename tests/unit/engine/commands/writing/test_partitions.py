"""Partitions of written files: the values of their columns, the names of their folders, and their readers."""

from __future__ import annotations

from dataclasses import replace

import polars
import pytest

from dbt.adapters.silt.engine.commands.writing import files
from dbt.adapters.silt.engine.kernel.errors import PartitionValueError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.paths import commit_path, decode_path
from tests.interop.rows import as_rows
from tests.unit.engine.commands.spark_tables import Tables, in_order
from tests.unit.engine.kernel.log_builder import reopened

INVALID = "bytes that are not valid UTF-8"
UNFIT = {
    "an empty string": "''",
    "a string with the character NUL": "concat('a', char(0))",
    INVALID: "cast(x'61ff' as string)",
    "a string that is too long": "repeat('é', 130)",
    "a string that is too long for the name": "repeat('/', 90)",
}
HIVES_NULL = "__HIVE_DEFAULT_PARTITION__"
TIMES = {
    "date": "date'+10000-01-01'",
    "timestamp": "timestamp_micros(-62135596800000001)",
    "timestamp_ntz": "timestamp_ntz'0000-12-31 00:00:00'",
}


def test_an_invalid_partition_value_is_refused_with_its_columns_name(tables: Tables, accelerator: str | None) -> None:
    log = tables.made("select 1 id, 'Bonn' `the city`", partition_columns=("the city",))
    before = tables.data_files(log)
    for what, text in UNFIT.items():
        if accelerator and what is INVALID:
            continue  # it replaces such bytes by U+FFFD
        with pytest.raises(PartitionValueError, match=rf"2 rows have {what}.*`the city`.*Nothing was written"):
            tables.append(log, f"select id, {text} from range(2) union all select 2, 'Bonn'")
    assert tables.data_files(log) == before


@pytest.mark.parametrize("kind", TIMES)
def test_a_timestamp_that_the_log_cannot_represent_is_refused(tables: Tables, kind: str) -> None:
    log = tables.made(f"select 1 id, cast(null as {kind}) at", partition_columns=("at",))
    with pytest.raises(PartitionValueError, match=r"1 row has a time outside the years 1 to 9999.*`at`"):
        tables.append(log, f"select 1, {TIMES[kind]}")


def change_version_0(log: DeltaLog, old: str, new: str) -> None:
    commit = log.store.read(commit_path(0)).decode()
    assert old in commit
    log.store.put(commit_path(0), commit.replace(old, new).encode())


def test_text_bytes_may_be_a_partition_value_of_another_writers_table(tables: Tables) -> None:
    log = tables.made("select 1 id, 'a' city", partition_columns=("city",))
    change_version_0(log, r"\"city\",\"type\":\"string\"", r"\"city\",\"type\":\"binary\"")
    log = reopened(log)
    rows = tables.spark.sql("select 2 id, cast('é' as binary) city")
    (add,) = files.write(rows, log, log.snapshot().metadata).adds
    assert dict(add.partition_values) == {"city": "é"}
    with pytest.raises(PartitionValueError, match="`city`"):
        files.write(tables.spark.sql("select 2 id, x'ff' city"), log, log.snapshot().metadata)


def test_an_empty_partition_value_in_the_log_is_null_whatever_the_file_contains(tables: Tables) -> None:
    log = tables.made("select 1 id, 'a' city", partition_columns=("city",))
    change_version_0(log, '"partitionValues":{"city":"a"}', '"partitionValues":{"city":""}')
    assert tables.rows(reopened(log)) == [(1, None)]


@pytest.mark.in_folders("folders of an object store keep the names of Spark's copies, as decision 0044 says")
def test_folders_have_the_names_of_the_columns_and_polars_reads_the_same_rows(tables: Tables) -> None:
    tables = replace(tables, place=tables.others("plain"))  # Polars does not read every folder name
    columns = (
        "text string, day date, at timestamp, wall timestamp_ntz, n decimal(38, 2), d double, f float, b byte, "
        "yes boolean"
    )
    log = tables.made(
        f"select id, c.* from values (1, from_csv('', '{columns}')) as t(id, c)",
        partition_columns=("text", "day", "at", "wall", "n", "d", "f", "b", "yes"),
    )
    texts = (
        "a b/c%=d",
        "é🦀",
        "007",
        " ",
        "a?b*c",
        HIVES_NULL,
        "=x",
        "it''s",
        '[1]{2}^"\\\\',
        "l" * 240,
    )
    rows = ", ".join(f"({number}, '{text}')" for number, text in enumerate(texts, 2))
    tables.append(
        log,
        "select id, text, date'0001-01-01', timestamp'1500-01-01 00:00:00.000001Z', timestamp_ntz'2024-03-10 02:30:00'"
        ", -0.05, if(id = 2, double('NaN'), -0.0D), float('-Infinity'), -128Y, id % 2 = 0 "
        f"from values {rows} as t(id, text)",
    )
    assert tables.read(log).filter("text is not null").count() == len(texts)
    folders = {decode_path(add.path).split("/")[1] for add in log.snapshot().add_files()}
    assert {"text=a b%2Fc%25%3Dd", f"text={HIVES_NULL}", "text=%5F_HIVE_DEFAULT_PARTITION__"} < folders
    theirs = as_rows(tables.place.polars(log.store.root).collect().to_arrow())
    # Polars reads Hive's word for null as null, in any case.
    assert repr(theirs) == repr(as_rows(tables.read(log).replace(HIVES_NULL, None, "text").toArrow()))  # type: ignore[call-overload]


def test_polars_reads_a_table_that_another_writer_has_appended_to(tables: Tables) -> None:
    tables = replace(tables, place=tables.others("plain"))
    log = tables.made("select 1L id, 'Bonn' city", partition_columns=("city",))
    polars.DataFrame({"id": [2], "city": ["Köln"]}).write_delta(
        log.store.root, mode="append", storage_options=tables.place.options
    )
    tables.append(log, "select 3L, 'Bonn'")
    found = tables.place.polars(log.store.root).sort("id").collect().rows()
    assert found == [(1, "Bonn"), (2, "Köln"), (3, "Bonn")]
    assert in_order(found) == tables.rows(log)
