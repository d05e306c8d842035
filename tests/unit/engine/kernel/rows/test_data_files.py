"""Data files of other writers, and damaged ones, are read by their table's schema or refused."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.silt.engine.kernel.errors import (
    CorruptLogError,
    DataFileChangedError,
    StorageError,
    TableDamagedError,
    UnsupportedStatementError,
)
from dbt.adapters.silt.engine.kernel.files.footers import WIDE_DIFFERENCES
from dbt.adapters.silt.engine.kernel.files.plain_types import BATCH_ROWS
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.maintenance.file_check import check_files
from dbt.adapters.silt.engine.kernel.rows.file_read import partition_value, read_file
from dbt.adapters.silt.engine.kernel.rows.scan import ArrowScan
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.table.actions import Action, AddFile, Metadata, Protocol, serialize
from dbt.adapters.silt.engine.kernel.table.schema import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from tests.fixed_clock import FixedClock

LONG, STRING = PrimitiveType("long"), PrimitiveType("string")
ID = "delta.columnMapping.id"
PHYSICAL = "delta.columnMapping.physicalName"


class Table:
    """A table with one file in a folder."""

    def __init__(self, folder: Path, data: pa.Table, schema: StructType, **options: Any) -> None:
        self.file = folder / "a.parquet"
        options.pop("writer", pq.write_table)(data, self.file, **options.pop("write", {}))
        stats = options.pop("stats", None)
        size = self.file.stat().st_size
        actions: list[Action] = [
            Protocol(2, 5) if "configuration" in options else Protocol(),
            Metadata("an-id", schema.to_json(), **options),
            AddFile("a.parquet", {}, size, int(self.file.stat().st_mtime * 1000), stats=stats),
        ]
        (folder / "_delta_log").mkdir()
        (folder / "_delta_log" / "00000000000000000000.json").write_bytes(serialize(actions))
        self.log = DeltaLog(LocalStore(folder), "main.t", FixedClock())

    def read(self, *names: str) -> pa.Table:
        scan = ArrowScan.of(self.log.snapshot(), names or None)
        batches = [batch for file in scan.files for batch in read_file(scan, file, self.log.store)]
        assert all(0 < batch.num_rows <= BATCH_ROWS for batch in batches)
        return pa.Table.from_batches(batches, scan.schema)


def by_duckdb(data: pa.Table, path: Path) -> None:
    """Writes distant 32-bit numbers in an encoding that Spark can read and Arrow cannot."""
    with duckdb.connect() as connection:
        connection.register("given", data)
        connection.execute(f"copy (select * from given) to '{path}' (format parquet, parquet_version v2)")


def struct(**members: DataType) -> StructType:
    return StructType(tuple(StructField(name, kind) for name, kind in members.items()))


def test_nested_values_of_many_batches_keep_their_positions(tmp_path: Path) -> None:
    schema = struct(a=ArrayType(struct(N=LONG)), m=MapType(STRING, struct(v=LONG, late=STRING)), s=struct(x=LONG))
    rows = [
        {
            "a": None if n % 5 == 0 else [{"n": n + at} for at in range(n % 3)],
            "m": None if n % 7 == 0 else [(f"k{at}", {"v": n}) for at in range(n % 2)],
            "s": None if n % 11 == 0 else {"x": n},
        }
        for n in range(BATCH_ROWS * 2 + 100)
    ]
    stored = pa.schema(
        [
            ("a", pa.list_(pa.struct([("n", pa.int32())]))),
            ("m", pa.map_(pa.string(), pa.struct([("v", pa.int64())]))),
            ("s", pa.struct([("x", pa.int32())])),
        ]
    )  # fmt: skip
    found = Table(tmp_path, pa.Table.from_pylist(rows, stored), schema).read().to_pylist()
    assert len(found) == len(rows)
    for got, row in zip(found, rows, strict=True):
        assert got["s"] == row["s"]
        assert got["a"] == (None if row["a"] is None else [{"N": each["n"]} for each in row["a"]])  # type: ignore[call-overload, index]
        late = None if row["m"] is None else [(key, {**value, "late": None}) for key, value in row["m"]]  # type: ignore[dict-item, misc]
        assert got["m"] == late


FAR_APART = [sign * (2**31 - 1 - n) for n in range(1500) for sign in (1, -1)]


def test_a_column_that_only_spark_can_read_is_refused_and_the_remedy_names_spark(tmp_path: Path) -> None:
    data = pa.table({"id": pa.array(range(3000), pa.int64()), "number": pa.array(FAR_APART, pa.int32())})
    table = Table(tmp_path, data, struct(id=LONG, number=PrimitiveType("integer")), writer=by_duckdb)
    assert table.read("id").num_rows == 3000
    with pytest.raises(
        TableDamagedError, match=r"a\.parquet: Arrow cannot read it \(.*, and Spark can: query"
    ) as caught:
        table.read()
    assert (caught.value.table, caught.value.details) == ("main.t", {"path": "a.parquet"})
    (problem,) = check_files(table.log.store, table.log.snapshot(), lambda done: None, data=True)
    assert WIDE_DIFFERENCES in problem.what
    assert list(check_files(table.log.store, table.log.snapshot(), lambda done: None)) == []


def test_a_damaged_page_is_not_blamed_on_the_encoding_of_another_column(tmp_path: Path) -> None:
    data = pa.table({"number": pa.array(range(3000), pa.int32()), "s": [f"s{n}" for n in range(3000)]})
    table = Table(tmp_path, data, struct(number=PrimitiveType("integer"), s=STRING), writer=by_duckdb)
    chunk = pq.ParquetFile(table.file).metadata.row_group(0).column(1)
    damaged = bytearray(table.file.read_bytes())
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    damaged[start : start + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    table.file.write_bytes(bytes(damaged))
    with pytest.raises(TableDamagedError, match="cannot be read") as caught:
        table.read("s")
    assert caught.value.action == TableDamagedError.remedy


def test_a_dot_in_a_column_name_does_not_separate_a_path(tmp_path: Path) -> None:
    data = pa.table({"a": pa.array([{"b": 1}]), "a.b": [2], "a`.c": [3]})
    table = Table(tmp_path, data, struct(**{"a": struct(b=LONG), "a.b": LONG, "a`.c": LONG}))  # type: ignore[arg-type]
    assert table.read("a.b").to_pylist() == [{"a.b": 2}]
    assert table.read("a").to_pylist() == [{"a": {"b": 1}}]
    assert table.read().to_pylist() == data.to_pylist()


def test_columns_are_found_in_any_case_and_missing_columns_are_null(tmp_path: Path) -> None:
    table = Table(tmp_path, pa.table({"ID": [1, 2], "Name": ["a", "b"]}), struct(id=LONG, late=STRING, name=STRING))
    assert table.read().to_pylist() == [
        {"id": 1, "late": None, "name": "a"},
        {"id": 2, "late": None, "name": "b"},
    ]
    assert table.read("late").to_pylist() == [{"late": None}] * 2


def test_a_file_with_two_columns_of_the_same_name_is_refused(tmp_path: Path) -> None:
    table = Table(tmp_path, pa.table({"id": [1], "ID": [2]}), struct(id=LONG))
    with pytest.raises(TableDamagedError, match=r"a\.parquet: the column `id` occurs 2 times in one file"):
        table.read()


@pytest.mark.parametrize(
    ("stored", "column_type", "value"),
    [
        (pa.array(["a"]).dictionary_encode(), STRING, "a"),
        (pa.array(["a"], pa.large_string()), STRING, "a"),
        (pa.array([b"a"]), STRING, "a"),
        (pa.array(["a"]), PrimitiveType("binary"), b"a"),
        (pa.array([5], pa.int8()), LONG, 5),
        (pa.array([5], pa.uint32()), LONG, 5),
        (pa.array([5], pa.int64()), PrimitiveType("short"), 5),
        (pa.array([Decimal("1.5")]), DecimalType(20, 4), Decimal("1.5000")),
        (pa.array([7], pa.int64()), DecimalType(38, 19), Decimal("7.0000000000000000000")),
        (pa.array([[1]], pa.large_list(pa.int32())), ArrayType(LONG), [1]),
        (pa.array([[1, 2]], pa.list_(pa.int64(), 2)), ArrayType(LONG), [1, 2]),
    ],
)
def test_values_of_another_physical_type_are_converted(
    tmp_path: Path, stored: pa.Array, column_type: DataType, value: Any
) -> None:
    table = Table(tmp_path, pa.table({"c": stored}), struct(c=column_type))
    assert table.read()["c"].to_pylist() == [value]


@pytest.mark.parametrize(
    ("stored", "column_type"),
    [
        (pa.array(["a"]), LONG),
        (pa.array([1 << 40]), PrimitiveType("integer")),
        (pa.array([1]), PrimitiveType("timestamp")),
        (pa.array([1.5]), LONG),
        (pa.array([Decimal("1.55")]), DecimalType(3, 1)),
        (pa.array([1]), ArrayType(LONG)),
        (pa.array([1]), struct(x=LONG)),
    ],
)
def test_values_of_a_type_that_cannot_be_converted_are_reported_as_damage(
    tmp_path: Path, stored: pa.Array, column_type: DataType
) -> None:
    table = Table(tmp_path, pa.table({"c": stored}), struct(c=column_type))
    message = r"a\.parquet: its column `c` has the type .* and cannot be read as"
    with pytest.raises(TableDamagedError, match=message) as refused:
        table.read()
    assert (refused.value.table, refused.value.version) == ("main.t", 0)


def test_a_file_without_the_field_ids_that_its_column_mapping_needs_is_refused(tmp_path: Path) -> None:
    schema = StructType((StructField("id", LONG, metadata={ID: 1, PHYSICAL: "id"}),))
    configuration = {"delta.columnMapping.mode": "id", "delta.columnMapping.maxColumnId": "1"}
    table = Table(tmp_path, pa.table({"id": [1]}), schema, configuration=configuration)
    with pytest.raises(TableDamagedError, match="it has no column ids"):
        table.read()


def test_a_file_with_another_row_count_than_in_the_log_is_refused(tmp_path: Path) -> None:
    table = Table(tmp_path, pa.table({"id": [1, 2]}), struct(id=LONG), stats='{"numRecords":3}')
    with pytest.raises(DataFileChangedError, match="has 2 rows, but the log says 3"):
        table.read()


def test_an_unreadable_page_is_reported_as_damage(tmp_path: Path) -> None:
    table = Table(tmp_path, pa.table({"id": list(range(5000))}), struct(id=LONG), write={"compression": "zstd"})
    content = bytearray(table.file.read_bytes())
    content[20:4000] = b"\xff" * 3980
    table.file.write_bytes(content)
    with pytest.raises(TableDamagedError, match=r"a\.parquet"):
        table.read()


def test_a_storage_failure_is_not_reported_as_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(tmp_path, pa.table({"id": [1]}), struct(id=LONG))

    class Failing:
        closed = False

        def seek(self, *place: int) -> int:
            return 0

        def tell(self) -> int:
            return table.file.stat().st_size

        def read(self, size: int = -1) -> bytes:
            raise StorageError("the service does not answer")

        def close(self) -> None:
            self.closed = True

        def __enter__(self) -> Failing:
            return self

        def __exit__(self, *error: object) -> None:
            self.close()

    table.log.snapshot()
    monkeypatch.setattr(LocalStore, "open_input", lambda self, path: Failing())
    with pytest.raises(StorageError, match="does not answer"):
        table.read()


@pytest.mark.parametrize("text", ["x", "1.5", "9223372036854775808"])
def test_a_partition_value_of_the_wrong_type_is_reported_as_damage_of_the_log(text: str) -> None:
    with pytest.raises(CorruptLogError, match="is not a value of the partition column `p`"):
        partition_value(text, StructField("p", LONG))


def test_a_table_without_columns_is_refused_by_name(tmp_path: Path) -> None:
    table = Table(tmp_path, pa.table({"id": [1]}), StructType(()))
    with pytest.raises(UnsupportedStatementError, match="the table has no columns"):
        ArrowScan.of(table.log.snapshot())
