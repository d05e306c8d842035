"""CONVERT TO DELTA without a Spark job: folders without partition values, and the reasons for a refusal."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, cast

import deltalake
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.commands.tables.clone import CloneOptions, CloneSource, clone
from dbt.adapters.silt.engine.commands.tables.convert import convert
from dbt.adapters.silt.engine.commands.target import Outcome, TableLocation, WriteSettings
from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError, NotATableError, TypeMismatchError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.scan.min_max import extreme
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructField
from dbt.adapters.silt.engine.sql.ast import CreateMode

NO_SPARK = cast(SparkSession, None)
DAY = StructField("Day", PrimitiveType("date"))


def put(folder: Path, file: str, **columns: Any) -> None:
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), folder / file)


def table_at(folder: Path) -> DeltaLog:
    return DeltaLog(LocalStore(folder), f"delta.`{folder}`")


def converted(folder: Path, *partitioning: StructField, **options: bool) -> tuple[DeltaLog, Outcome]:
    log = table_at(folder)
    return log, convert(NO_SPARK, log, partitioning, WriteSettings(txn=("convert", 1)), **options)


def other_rows(folder: Path) -> list[dict[str, Any]]:
    return sorted(deltalake.DeltaTable(str(folder)).to_pyarrow_table().to_pylist(), key=repr)


def test_another_reader_reads_the_converted_folder(tmp_path: Path) -> None:
    put(tmp_path, "1.parquet", id=pa.array([1], pa.int8()), name=["a"])
    put(tmp_path, "deeper/with space/2.parquet", ID=pa.array([300], pa.int32()), more=[1.5])
    log, outcome = converted(tmp_path)
    assert (outcome.operation, outcome.version, outcome.files_added) == ("CONVERT", 0, 2)
    assert [(each.name, each.type.sql_name) for each in log.snapshot().schema] == [
        ("id", "int"),
        ("name", "string"),
        ("more", "double"),
    ]
    assert [row["id"] for row in other_rows(tmp_path)][:1] == [1]
    assert log.snapshot().transaction_version("convert") == 1


def test_the_statistics_are_read_from_the_footers_unless_statistics_are_disabled(tmp_path: Path) -> None:
    put(tmp_path / "with", "1.parquet", id=[3, 5, None])
    put(tmp_path / "without", "1.parquet", id=[3])
    (add,) = converted(tmp_path / "with")[0].snapshot().add_files()
    expected = '{"numRecords":3,"minValues":{"id":3},"maxValues":{"id":5},"nullCount":{"id":1}}'
    assert add.stats == expected
    (add,) = converted(tmp_path / "without", with_statistics=False)[0].snapshot().add_files()
    assert add.stats is None


def test_bounds_that_other_writers_may_have_truncated_are_not_used_as_values(tmp_path: Path) -> None:
    pl.DataFrame({"s": ["日" * 22, "z" * 70, "語" * 22]}).write_parquet(tmp_path / "1.parquet")
    log, _ = converted(tmp_path)
    snapshot = log.snapshot()
    (add,) = snapshot.add_files()
    assert not add.tags
    values = json.loads(add.stats or "")
    assert values["minValues"]["s"].encode() <= b"z" * 70
    assert values["maxValues"]["s"].encode() >= ("語" * 22).encode()
    assert extreme(log.store, snapshot, snapshot.files, "s", "max") is None
    assert extreme(log.store, snapshot, snapshot.files, "s", "min") is None


def test_a_type_that_arrow_cannot_read_is_refused_with_its_file(tmp_path: Path) -> None:
    pl.DataFrame({"i": pl.Series([1], dtype=pl.Int128)}).write_parquet(tmp_path / "1.parquet")
    with pytest.raises(TypeMismatchError, match=r"1\.parquet has a type that a table's column cannot have"):
        converted(tmp_path)
    assert not (tmp_path / LOG_FOLDER).exists()


@pytest.mark.parametrize("name", ["a:b.parquet", "a:b/1.parquet"])
def test_a_path_that_looks_like_a_uri_is_refused_before_a_log_is_created(tmp_path: Path, name: str) -> None:
    put(tmp_path, name, id=[1])
    with pytest.raises(InvalidStatementError, match=rf"the path {name} begins like the URI .* Rename the file"):
        converted(tmp_path)
    assert not (tmp_path / LOG_FOLDER).exists()


def test_the_history_records_the_conversion(tmp_path: Path) -> None:
    put(tmp_path, "1.parquet", id=[3])
    log, _ = converted(tmp_path)
    (commit,) = log.commits()
    info = next(action for action in commit.actions if isinstance(action, CommitInfo))
    assert info.operation_parameters == {
        "numFiles": 1,
        "partitionedBy": "[]",
        "collectStats": True,
        "sourceFormat": "parquet",
    }
    assert info.operation_metrics == {"numConvertedFiles": "1"}


def test_hidden_files_and_folders_are_ignored_except_for_partition_folders(tmp_path: Path) -> None:
    put(tmp_path, "_day=__HIVE_DEFAULT_PARTITION__/1.parquet", id=[1])
    for hidden in ("_day=__HIVE_DEFAULT_PARTITION__/_SUCCESS", "_temporary/x.parquet", ".x.crc", ".folder/y"):
        (tmp_path / hidden).parent.mkdir(exist_ok=True)
        (tmp_path / hidden).write_text("not Parquet")
    _, outcome = converted(tmp_path, StructField("_day", PrimitiveType("date")))
    assert outcome.files_added == 1
    assert other_rows(tmp_path) == [{"id": 1, "_day": None}]


def test_the_folders_value_of_a_column_takes_precedence_over_the_files(tmp_path: Path) -> None:
    put(tmp_path, "day=__HIVE_DEFAULT_PARTITION__/1.parquet", day=["in the file"], id=[1])
    log, _ = converted(tmp_path, DAY)
    assert [(each.name, each.type.sql_name) for each in log.snapshot().schema] == [("day", "date"), ("id", "bigint")]
    assert log.snapshot().partition_columns == ("day",)


@pytest.mark.parametrize("partitioning", [(), (DAY, DAY), (StructField("other", PrimitiveType("date")),)])
def test_folders_and_clause_must_name_the_same_columns(tmp_path: Path, partitioning: tuple[StructField, ...]) -> None:
    put(tmp_path, "day=2024-01-01/1.parquet", id=[1])
    with pytest.raises(
        InvalidStatementError, match=r"\[day\], and the statement names .*PARTITIONED BY \(`day` string"
    ):
        converted(tmp_path, *partitioning)
    assert os.listdir(tmp_path) == ["day=2024-01-01"]


def test_the_text_of_a_folders_name_is_taken_literally(tmp_path: Path) -> None:
    put(tmp_path, "word==a%2Fb %C3%A9/1.parquet", id=[1])
    log, _ = converted(tmp_path, StructField("word", PrimitiveType("string")))
    assert [add.partition_values for add in log.snapshot().add_files()] == [{"word": "=a/b é"}]
    assert other_rows(tmp_path) == [{"id": 1, "word": "=a/b é"}]


def test_a_file_outside_of_the_partition_folders_is_named(tmp_path: Path) -> None:
    put(tmp_path, "day=__HIVE_DEFAULT_PARTITION__/1.parquet", id=[1])
    put(tmp_path, "2.parquet", id=[1])
    with pytest.raises(InvalidStatementError, match=r"2\.parquet lies in folders"):
        converted(tmp_path, DAY)


def test_files_with_contradicting_schemas_are_both_named(tmp_path: Path) -> None:
    put(tmp_path, "1.parquet", id=[1])
    put(tmp_path, "2.parquet", id=[2], amount=[1])
    put(tmp_path, "3.parquet", id=[2], amount=["much"])
    with pytest.raises(TypeMismatchError, match=r"`amount` is bigint .* string in others: 2\.parquet and 3\.parquet"):
        converted(tmp_path)


def test_a_missing_folder_or_a_folder_without_files_is_not_converted(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(NotATableError):
            converted(folder)


def test_an_existing_table_is_not_changed(tmp_path: Path) -> None:
    put(tmp_path, "1.parquet", id=[1])
    converted(tmp_path)
    put(tmp_path, "2.parquet", id=[2])
    _, outcome = converted(tmp_path)
    assert (outcome.version, outcome.attempts) == (0, 0)
    assert len(other_rows(tmp_path)) == 1


def test_another_reader_reads_a_deep_clone_and_fails_on_a_shallow_clone(tmp_path: Path) -> None:
    """delta-rs takes every path as relative to the table: an error, and no wrong rows."""
    put(tmp_path / "source", "1.parquet", id=[1])
    source, _ = converted(tmp_path / "source")
    for shallow in (True, False):
        log = table_at(tmp_path / str(shallow))
        log.store.make_folder(LOG_FOLDER)
        of = CloneSource("source", source, source.snapshot())
        clone(TableLocation(log, None), of, CloneOptions(shallow), CreateMode.CREATE, WriteSettings())
    assert other_rows(tmp_path / "False") == [{"id": 1}]
    with pytest.raises(FileNotFoundError):
        other_rows(tmp_path / "True")
