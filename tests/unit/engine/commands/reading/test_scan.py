"""A scan reads exactly the selected files, with the table's columns."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

from dbt.adapters.silt.engine.commands.reading import scan
from dbt.adapters.silt.engine.commands.reading.positions import FILE, ROW, paths_by_report
from dbt.adapters.silt.engine.commands.writing import files
from dbt.adapters.silt.engine.kernel.errors import DataFileMissingError, TableDamagedError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, Metadata, Protocol, serialize
from dbt.adapters.silt.engine.kernel.table.paths import commit_path
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructField, StructType
from tests.unit.engine.commands.spark_tables import Tables, in_order

ODD_TEXTS = ["a b/c%d", "é=[x]", "__HIVE_DEFAULT_PARTITION__", "=", "A", "a", "line\nbreak", "{*?}\\", "%41", None]


def theirs(tables: Tables, data: pa.Table, *partition_by: str) -> DeltaLog:
    return tables.made_by_delta_rs("theirs", data, *partition_by)


def positioned(tables: Tables, log: DeltaLog) -> DataFrame:
    return scan.read(tables.spark, log, log.snapshot(), with_position=True)


def places(tables: Tables, log: DeltaLog) -> list[tuple[str, int]]:
    """Returns the file, as the log names it, and the position of each row."""
    paths = paths_by_report(log, log.snapshot().files)
    return sorted((paths[row[FILE]], row[ROW]) for row in positioned(tables, log).collect())


def values(frame: DataFrame) -> list[tuple[object, ...]]:
    return in_order([tuple(row.values()) for row in frame.toArrow().to_pylist()])


def test_a_scan_of_no_files_has_the_tables_columns(tables: Tables) -> None:
    log = tables.made("select 1L id, array(named_struct('a', 'x')) s where false")
    frame = positioned(tables, log)
    assert frame.columns == ["id", "s", FILE, ROW]
    assert values(frame) == []


def test_only_the_selected_files_are_read(tables: Tables) -> None:
    log = tables.made("select 1L id")
    tables.append(log, "values (2L)")
    snapshot = log.snapshot()
    newest = snapshot.files.slice(snapshot.files["stats"].to_pylist().index(snapshot.files["stats"][-1].as_py()), 1)
    assert len(values(scan.read(tables.spark, log, snapshot, newest))) == 1


def test_columns_are_nullable_and_keep_their_metadata(tables: Tables) -> None:
    log = tables.made("select 1 id, 'x' p", partition_columns=("p",))
    (first, second) = tables.read(log).schema.fields
    assert (first.nullable, second.nullable) == (True, True)
    schema = StructType((StructField("id", PrimitiveType("integer"), False, {"comment": "the key"}),))
    metadata = dataclasses.replace(log.snapshot().metadata, schema_string=schema.to_json(), partition_columns=())
    snapshot = dataclasses.replace(log.snapshot(), metadata=metadata)
    (field,) = scan.read(tables.spark, log, snapshot).schema.fields
    assert (field.nullable, field.metadata) == (True, {"comment": "the key"})


def test_this_engines_partitioned_files_are_read_back_with_every_kind_of_value(tables: Tables) -> None:
    texts = " union all ".join(
        f"select {number} id, {'cast(null as string)' if text is None else _sql(text)} p"
        for number, text in enumerate(ODD_TEXTS)
    )
    log = tables.made(texts, partition_columns=("p",))
    expected = in_order(list(enumerate(ODD_TEXTS)))
    assert values(tables.read(log)) == expected
    assert in_order(tables.as_others_read(log)) == expected


def test_positions_name_the_file(tables: Tables) -> None:
    log = tables.made("select id, concat('a b%', id % 2) p from range(6)", partition_columns=("p",))
    paths = log.snapshot().files["path"].to_pylist()
    assert len(paths) == 2
    assert places(tables, log) == sorted((path, at) for path in paths for at in range(3))


@pytest.mark.parametrize("partitions", [3, 40])
def test_files_of_other_writers_get_their_partition_columns_from_the_log(tables: Tables, partitions: int) -> None:
    parts = [ODD_TEXTS[number] if number < 2 else f"p{number}" for number in range(partitions)]
    data = pa.table({"p": pa.array(parts), "id": pa.array(range(partitions), pa.int64())})
    log = theirs(tables, data, "p")
    expected = in_order(list(zip(parts, range(partitions), strict=True)))
    assert values(tables.read(log)) == expected
    assert {path for path, _ in places(tables, log)} == set(log.snapshot().files["path"].to_pylist())
    assert values(positioned(tables, log).drop(FILE, ROW)) == expected


def test_partition_values_have_the_columns_type_in_every_session_time_zone(tables: Tables) -> None:
    moment = datetime(2024, 1, 1, 10, 30, 0, 123456, timezone.utc)
    data = pa.table(
        {
            "at": pa.array([moment, None], pa.timestamp("us", "UTC")),
            "day": pa.array([moment.date(), None], pa.date32()),
            "yes": pa.array([True, None]),
            "id": pa.array([1, 2]),
        }
    )
    log = theirs(tables, data, "at", "day", "yes")
    assert values(tables.read(log)) == in_order([(moment, moment.date(), True, 1), (None, None, None, 2)])


def test_rows_of_this_engine_and_of_other_writers_are_read_together(tables: Tables) -> None:
    log = theirs(tables, pa.table({"p": ["a", "b"], "id": pa.array([1, 2], pa.int64())}), "p")
    tables.append(log, "select 'a', 3L")
    assert tables.rows(log) == [("a", 1), ("a", 3), ("b", 2)]


of_a_folder = pytest.mark.in_folders("`file:` is a folder's")


@pytest.mark.parametrize(
    "spelling", ["{}", pytest.param("file:{}", marks=of_a_folder), pytest.param("file://{}", marks=of_a_folder)]
)
def test_absolute_and_unusually_spelled_paths_are_read_and_returned_as_in_the_log(
    tables: Tables, spelling: str
) -> None:
    source = tables.made("select 7L id", "source")
    (path,) = source.snapshot().files["path"].to_pylist()
    quoted = (source.store.root + "/" + path).replace("%", "%25").replace(" ", "%20").replace("[", "%5B")
    log = _pointing_to(tables, source, spelling.format(quoted.replace("]", "%5D")))
    assert positioned(tables, log).select("id").collect() == [(7,)]
    assert places(tables, log) == [(log.snapshot().files["path"][0].as_py(), 0)]


def test_a_column_that_a_file_lacks_is_null_in_its_rows(tables: Tables) -> None:
    log = tables.made("select 1L id")
    tables.append(log, "select 2L id, 'x' name", by_name=True, schema_evolution=True)
    assert tables.rows(log) == [(1, None), (2, "x")]


def test_a_void_column_is_null(tables: Tables) -> None:
    source = tables.made("select 7L id", "source")
    schema = StructType((StructField("nothing", PrimitiveType("void")), *source.snapshot().schema))
    metadata = dataclasses.replace(source.snapshot().metadata, schema_string=schema.to_json())
    snapshot = dataclasses.replace(source.snapshot(), metadata=metadata)
    assert values(scan.read(tables.spark, source, snapshot)) == [(None, 7)]


def test_a_missing_file_is_named(tables: Tables) -> None:
    log = tables.made("select 1L id")
    (name,) = tables.data_files(log)
    log.store.delete(name)
    with pytest.raises(DataFileMissingError, match=Path(name).name):
        tables.rows(log)


def test_a_file_that_disappears_or_is_damaged_after_planning_fails_the_statement(tables: Tables) -> None:
    source = tables.made("select 1L id", "source")
    log = tables.made("select 1L id")
    (name,) = tables.data_files(source)
    frame = tables.read(source)
    source.store.put(name, b"PAR1 nothing more")
    with pytest.raises(TableDamagedError, match=Path(name).name):
        files.write(frame, log, log.snapshot().metadata)
    source.store.delete(name)
    with pytest.raises(DataFileMissingError, match=Path(name).name):
        files.write(frame, log, log.snapshot().metadata)
    assert len(tables.data_files(log)) == 1


def _sql(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"


def _pointing_to(tables: Tables, source: DeltaLog, path: str) -> DeltaLog:
    """Creates a table whose only file is another table's, by an absolute path."""
    (add,) = source.snapshot().add_files()
    log = tables.log("pointing")
    actions = (Protocol(), _metadata(source), AddFile(path, {}, add.size, add.modification_time, stats=add.stats))
    log.store.put_if_absent(commit_path(0), serialize(actions))
    return log


def _metadata(log: DeltaLog) -> Metadata:
    return dataclasses.replace(log.snapshot().metadata, id="another")
