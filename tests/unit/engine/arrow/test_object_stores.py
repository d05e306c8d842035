"""Only the parts that the columns need are read from objects in an object store."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.silt.engine.arrow.read import TableRead, condition, in_order
from dbt.adapters.silt.engine.kernel.errors import DataFileMissingError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.rows.scan import ArrowScan
from dbt.adapters.silt.engine.kernel.storage import object_store
from dbt.adapters.silt.engine.kernel.storage.object_store import ObjectStore
from dbt.adapters.silt.engine.kernel.table.actions import Action, AddFile, Metadata, Protocol, serialize
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructField, StructType

SCHEMA = StructType(
    tuple(
        StructField(name, PrimitiveType(kind))
        for name, kind in (("id", "long"), ("key", "long"), ("payload", "binary"))
    )
)
ROWS, GROUPS, PAYLOAD = 400, 4, 10_000


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    """The log of a table of one file with two columns, of which one is much larger."""
    numbers = range(ROWS)
    rows = {
        "id": numbers,
        "key": [7 * n % ROWS for n in numbers],
        "payload": pa.array([os.urandom(PAYLOAD) for _ in range(ROWS)]),
    }
    pq.write_table(pa.table(rows), tmp_path / "a.parquet", row_group_size=ROWS // GROUPS)
    content = (tmp_path / "a.parquet").read_bytes()
    store = ObjectStore("memory:///")
    store.put("a.parquet", content)
    actions: list[Action] = [Protocol(), Metadata("an-id", SCHEMA.to_json()), AddFile("a.parquet", {}, len(content), 0)]
    store.put("_delta_log/00000000000000000000.json", serialize(actions))
    return DeltaLog(store, "main.t")


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of bytes of each range request for a data file."""
    found: list[int] = []
    read = object_store._Ranges._read

    def counted(self: object_store._Ranges, start: int, end: int) -> bytes:
        found.append(end - start)
        return read(self, start, end)

    monkeypatch.setattr(object_store._Ranges, "_read", counted)
    return found


def read(log: DeltaLog, *names: str, where: str | None = None) -> pa.Table:
    snapshot = log.snapshot()
    scan = ArrowScan.of(snapshot, names or None, condition(where, snapshot, log.name))
    return pa.Table.from_batches(TableRead(log, snapshot, scan).batches(), scan.schema)


def test_reading_a_small_column_does_not_fetch_a_large_column(log: DeltaLog, requests: list[int]) -> None:
    assert read(log, "id")["id"].to_pylist() == list(range(ROWS))
    assert sum(requests) < PAYLOAD * ROWS // 10


def test_a_point_lookup_reads_one_row_group(log: DeltaLog, requests: list[int]) -> None:
    found = read(log, where="id = 250")
    assert found["id"].to_pylist() == [250] and len(found["payload"][0].as_py()) == PAYLOAD
    assert sum(requests) < PAYLOAD * ROWS // GROUPS * 1.1
    assert len(requests) <= GROUPS


def test_the_columns_of_a_condition_are_read_before_other_columns(log: DeltaLog, requests: list[int]) -> None:
    assert read(log, where="key = 7")["id"].to_pylist() == [1]
    assert sum(requests) < PAYLOAD * ROWS // GROUPS * 1.1
    assert read(log, where="key is null or key = -1").num_rows == 0


def test_a_missing_object_raises_the_error_of_a_missing_file(log: DeltaLog) -> None:
    log.store.delete("a.parquet")
    with pytest.raises(DataFileMissingError, match=r"a\.parquet is missing"):
        read(log)


def test_files_are_returned_in_order_and_an_error_stops_the_reading_of_later_files() -> None:
    files = [AddFile(str(number), {}, 0, 0) for number in range(20)]

    def batches(file: AddFile) -> object:
        if file.path == "13":
            raise DataFileMissingError("gone")
        yield from (pa.record_batch({"n": [int(file.path)]}) for _ in range(10))

    found = []
    with contextlib.suppress(DataFileMissingError):
        for batch in in_order(batches, files, 5):  # type: ignore[arg-type]
            found.append(batch["n"][0].as_py())
    assert found == [number for number in range(13) for _ in range(10)]
