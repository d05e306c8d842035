"""Data files: their folder, codec, sizes, statistics and row counts."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from dbt.adapters.silt.engine.commands.writing import files
from dbt.adapters.silt.engine.commands.writing.files import Written
from dbt.adapters.silt.engine.kernel.errors import InternalError, InvalidSettingError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.paths import decode_path
from tests.unit.engine.commands.spark_tables import Tables, file_in


def written(tables: Tables, log: DeltaLog, query: str) -> Written:
    return files.write(tables.spark.sql(query), log, log.snapshot().metadata)


def test_each_write_creates_files_in_a_separate_folder_only(tables: Tables) -> None:
    log = tables.made("select 1L id where false")
    found = written(tables, log, "select id from range(0, 10, 1, 3)")
    assert found.rows == 10
    assert {decode_path(add.path) for add in found.adds} == tables.data_files(log)
    assert {add.path.partition("/")[0] for add in found.adds} == {found.folder}
    assert not found.folder.startswith(("_", "."))


@pytest.mark.in_folders("an object store has no modes")
def test_the_folder_of_a_write_has_the_mode_of_the_process(tables: Tables) -> None:
    """Spark finds the folder, so that Java starts no process to set its mode."""
    log = tables.made("select 1L id where false")
    before = os.umask(0o027)
    try:
        found = written(tables, log, "select 1L id")
    finally:
        os.umask(before)
    folder = Path(log.store.local_path(found.folder) or "")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o750
    assert [each.name.partition("-")[0] for each in folder.iterdir()] == ["part"]


def test_an_added_file_has_size_time_and_statistics(tables: Tables) -> None:
    log = tables.made("select 1L id, 'a' name where false")
    (add,) = written(tables, log, "select 5L id, 'x' name union all select 7L, null").adds[-1:]
    status = log.store.status(decode_path(add.path))
    assert status is not None
    assert (add.size, add.modification_time) == (status.size, status.modified_ms)
    assert add.stats is not None
    assert set(json.loads(add.stats)) == {"numRecords", "minValues", "maxValues", "nullCount"}


def test_the_tables_codec_is_used(tables: Tables) -> None:
    log = tables.made("select 1L id where false", properties={"delta.parquet.compression.codec": "zstd"})
    (add,) = written(tables, log, "select 1L id").adds
    footer = pq.read_metadata(file_in(log, decode_path(add.path)))
    assert footer.row_group(0).column(0).compression == "ZSTD"


def test_partition_values_are_exact_and_in_utc(tables: Tables) -> None:
    moment = "timestamp'2024-11-03 01:30:00 America/Los_Angeles'"
    query = f"select 1 id, {moment} at, cast(1.10 as decimal(5,2)) n, 1e20D d, true b"
    log = tables.made(f"{query} where false", partition_columns=("at", "n", "d", "b"))
    # One hour later the clocks have been set back, and the local time is the same.
    found = written(tables, log, f"{query} union all select id, at + interval 1 hour, n, d, b from ({query})")
    assert sorted(json.dumps(add.partition_values) for add in found.adds) == [
        '{"at": "2024-11-03T08:30:00.000000Z", "n": "1.10", "d": "1.0E20", "b": "true"}',
        '{"at": "2024-11-03T09:30:00.000000Z", "n": "1.10", "d": "1.0E20", "b": "true"}',
    ]


def test_a_column_named_like_the_internal_copy_of_a_partition_column_is_written(tables: Tables) -> None:
    log = tables.made("select 1 id, 2 p, 3 p_", partition_columns=("p",))
    assert tables.rows(log) == [(1, 2, 3)]


def test_a_write_without_rows_creates_no_file(tables: Tables) -> None:
    log = tables.made("select 1L id where false")
    found = written(tables, log, "select id from range(10) where id > 100")
    assert (found.adds, found.rows) == ((), 0)
    assert tables.data_files(log) == set()
    assert log.store.list_folders("") == ["_delta_log"]


def test_requested_metrics_are_observed_during_the_write(tables: Tables) -> None:
    log = tables.made("select 1L id where false")
    query = tables.spark.range(10)
    found = files.write(query, log, log.snapshot().metadata, metrics={"even": "count_if(id % 2 = 0)"})
    assert found.metrics == {"even": 5}


def test_rows_missing_in_the_files_are_an_error_and_no_file_remains(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tables.made("select 1L id where false")
    listed = type(log.store).files_below
    monkeypatch.setattr(type(log.store), "files_below", lambda *of: listed(*of)[1:])
    with pytest.raises(InternalError, match="10 rows were written, but the files hold"):
        written(tables, log, "select id from range(10)")
    assert tables.data_files(log) == set()


def test_discarded_files_are_deleted(tables: Tables) -> None:
    log = tables.made("select 1L id where false")
    written(tables, log, "select 1L id").discard(log)
    assert tables.data_files(log) == set()


@pytest.mark.parametrize(
    ("key", "value"),
    [("spark.sql.parquet.outputTimestampType", "INT96"), ("spark.sql.caseSensitive", "true")],
)
def test_a_session_setting_that_would_produce_wrong_files_is_refused(tables: Tables, key: str, value: str) -> None:
    log = tables.made("select 1L id where false")
    before = tables.spark.conf.get(key)
    tables.spark.conf.set(key, value)
    try:
        with pytest.raises(InvalidSettingError, match=key):
            written(tables, log, "select 1L id")
    finally:
        tables.spark.conf.set(key, before)  # type: ignore[arg-type]
