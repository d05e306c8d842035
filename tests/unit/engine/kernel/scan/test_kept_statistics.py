"""Statistics that are read from the checkpoint on demand give the same files, JSON and answers as if read at once."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt.adapters.silt.engine.kernel.clock import SystemClock
from dbt.adapters.silt.engine.kernel.errors import CorruptCheckpointError
from dbt.adapters.silt.engine.kernel.files.statistics import TRUSTED
from dbt.adapters.silt.engine.kernel.log import checkpoint_read, checkpoint_write
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.scan import skipping
from dbt.adapters.silt.engine.kernel.table.actions import (
    Action,
    AddFile,
    CommitInfo,
    DeletionVector,
    Metadata,
    Protocol,
    RemoveFile,
    serialize,
)
from dbt.adapters.silt.engine.kernel.table.expressions import Column, Comparison, Expression
from dbt.adapters.silt.engine.kernel.table.paths import commit_path
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructField, StructType
from tests.examples import examples
from tests.memory_store import MemoryStore
from tests.unit.engine.kernel.scan.test_skipping_properties import KINDS, Kind, check, parquet_stats, predicates

LONG = StructType((StructField("c", PrimitiveType("long")),))
FORMS = {
    "text": {"delta.checkpoint.writeStatsAsStruct": "false"},
    "columns": {"delta.checkpoint.writeStatsAsJson": "false", "delta.checkpoint.writeStatsAsStruct": "true"},
    "both": {"delta.checkpoint.writeStatsAsStruct": "true"},
}
KEPT = "dbt.adapters.silt.engine.kernel.files.table_files"
V2 = {"delta.checkpointPolicy": "v2"}
KINDS_AND_FORMS = [
    pytest.param(name, form, marks=[] if at % len(FORMS) == number else pytest.mark.long)
    for at, name in enumerate(KINDS)
    for number, form in enumerate(FORMS)
]
ODD = [None, "", "no json", "{}", '{"numRecords":1}', '{"numRecords":2,"minValues":{"c":"x"},"nullCount":{"c":0}}']


@pytest.fixture(autouse=True)
def small_batches() -> Iterator[None]:
    """Uses several batches and sidecars of few files each."""
    with (
        mock.patch("dbt.adapters.silt.engine.kernel.files.bounded_parquet.BATCH_ROWS", 4),
        mock.patch.object(checkpoint_write, "PART_ACTIONS", 5),
    ):
        yield


def store_of(schema: StructType, adds: Sequence[AddFile], configuration: Mapping[str, str]) -> MemoryStore:
    """Creates a table with a checkpoint of these files."""
    store = MemoryStore()
    store.make_folder("_delta_log")
    features = ("v2Checkpoint", "deletionVectors")
    header: list[Action] = [
        Protocol(3, 7, features, features),
        Metadata("id", schema.to_json(), configuration=configuration),
    ]
    store.put(commit_path(0), serialize([*header, *adds]))
    log = DeltaLog(store, "t", SystemClock())
    log.checkpoint(log.snapshot())
    return store


def opened(store: MemoryStore, few_rows: int) -> DeltaLog:
    """Opens the table from its checkpoint; statistics of larger files are read on demand."""
    log = DeltaLog(store, "t", SystemClock())
    with mock.patch.object(checkpoint_read, "_FEW_ROWS", few_rows):
        log.snapshot()
    return log


def both_ways(store: MemoryStore) -> tuple[Snapshot, Snapshot]:
    """Opens the table with its statistics read on demand, and with them read at once."""
    later, at_once = opened(store, -1).snapshot(), opened(store, 1_000_000).snapshot()
    assert later.active.early.num_rows == at_once.active.late.num_rows == at_once.num_files
    return later, at_once


def long_files(numbers: Sequence[int]) -> list[AddFile]:
    bounds = '{{"numRecords":1,"minValues":{{"c":{0}}},"maxValues":{{"c":{0}}},"nullCount":{{"c":0}}}}'
    return [AddFile(f"f{number}", {}, 10, 0, stats=bounds.format(number)) for number in numbers]


def equals(number: int) -> Expression:
    return Comparison("=", Column(("c",)), number)


@pytest.mark.parametrize(("name", "form"), KINDS_AND_FORMS)
@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_statistics_read_on_demand_give_the_same_files(name: str, form: str, data: st.DataObject) -> None:
    kind: Kind = KINDS[name]
    files = data.draw(st.lists(st.lists(kind.values | st.none(), max_size=3), min_size=1, max_size=7))
    tags = data.draw(st.sampled_from([None, TRUSTED]))
    drawn = (data.draw(st.just(text) | st.just(text) | st.sampled_from(ODD)) for text in parquet_stats(kind, files))
    adds = [AddFile(str(number), {}, 1, 0, stats=text, tags=tags) for number, text in enumerate(drawn)]
    policy = data.draw(st.sampled_from([{}, V2]))
    schema = StructType((StructField("c", kind.type),))
    later, at_once = both_ways(store_of(schema, adds, {**FORMS[form], **policy}))
    predicate = data.draw(predicates(kind, [value for rows in files for value in rows]))
    found_later, known = (skipping.prune(snapshot, predicate) for snapshot in (later, at_once))
    if form == "both":
        # The JSON may contain more than its column.
        assert set(known["path"].to_pylist()) <= set(found_later["path"].to_pylist())
    else:
        assert found_later.to_pylist() == known.to_pylist()
    assert later.files.equals(at_once.files.combine_chunks().cast(later.files.schema))
    assert later.files_without_statistics.to_pylist() == at_once.files_without_statistics.to_pylist()
    check(later, predicate, [() if add.stats in ODD else rows for add, rows in zip(adds, files, strict=True)])


@settings(max_examples=examples(25), deadline=None)
@given(data=st.data())
def test_later_commits_change_the_table_like_any_other(data: st.DataObject) -> None:
    store = store_of(LONG, long_files(range(12)), {**FORMS[data.draw(st.sampled_from(sorted(FORMS)))], **V2})
    logs = [opened(store, -1), opened(store, 1_000_000)]
    logs[0].snapshot()
    for version in range(1, data.draw(st.integers(1, 4)) + 1):
        gone = data.draw(st.lists(st.integers(0, 20), max_size=3, unique=True))
        new = sorted(set(data.draw(st.lists(st.integers(0, 20), max_size=3))).difference(gone))
        store.put(
            commit_path(version), serialize([CommitInfo(), *(RemoveFile(f"f{n}", 1) for n in gone), *long_files(new)])
        )
    later, at_once = (log.snapshot() for log in logs)
    number = data.draw(st.integers(0, 20))
    for predicate in (equals(number), Comparison("<", Column(("c",)), number)):
        found_later, known = (skipping.prune(snapshot, predicate) for snapshot in (later, at_once))
        assert found_later.to_pylist() == known.to_pylist()
    assert later.add_files() == at_once.add_files()
    assert later.size_in_bytes == at_once.size_in_bytes
    keys = [f"f{number}", "f3", "not there"]
    assert later.active.with_keys(keys).to_pylist() == at_once.active.with_keys(keys).to_pylist()


@pytest.mark.parametrize("form", FORMS)
def test_a_checkpoint_of_the_table_is_like_any_other(form: str) -> None:
    vector = DeletionVector("u", "ab", 1, 1)
    adds = [*long_files(range(11)), replace(long_files([11])[0], deletion_vector=vector)]
    store = store_of(LONG, adds, FORMS[form])
    path = "_delta_log/00000000000000000000.checkpoint.parquet"
    first = store.read(path)
    store.delete(path)
    hidden = MemoryStore()
    hidden.make_folder("_delta_log")
    hidden.put(path, first)
    hidden.put(commit_path(0), store.read(commit_path(0)))
    log = opened(hidden, -1)
    snapshot = log.snapshot()
    assert snapshot.active.early.num_rows == 12
    hidden.delete(path)
    checkpoint_write.write_checkpoint(hidden, snapshot, log.tombstones(snapshot), SystemClock())
    tables = [pq.read_table(io.BytesIO(data)) for data in (first, hidden.read(path))]
    assert tables[0].to_pylist() == tables[1].to_pylist()


def test_a_column_is_read_from_the_checkpoint_once() -> None:
    snapshot = opened(store_of(LONG, long_files(range(9)), {}), -1).snapshot()
    assert skipping.prune(snapshot, equals(3)).num_rows == 1
    with mock.patch(f"{KEPT}.BoundedParquet", side_effect=AssertionError):
        early = snapshot.active.early_statistics({("minValues", "c"): None})
    assert early[("minValues", "c")].to_pylist() == list(range(9))


def test_bounds_in_columns_are_read_without_the_json() -> None:
    store = store_of(LONG, long_files(range(9)), FORMS["both"])
    snapshot = opened(store, -1).snapshot()
    with mock.patch(f"{KEPT}.stats_json.read", side_effect=AssertionError):
        found = snapshot.active.early_statistics({("minValues", "c"): None, ("nullCount", "c"): None})
    assert found[("minValues", "c")].to_pylist() == list(range(9))


def test_an_empty_struct_of_statistics_leaves_them_to_the_json() -> None:
    adds = long_files(range(6))
    kind = pa.struct([("minValues", pa.struct([("c", pa.int64())]))])
    rest: dict[str, Any] = {"partitionValues": [], "size": 1, "stats_parsed": None}
    rows = [{"path": add.path, "stats": add.stats, **rest} for add in adds]
    member = pa.struct(
        [
            ("path", pa.string()),
            ("partitionValues", pa.map_(pa.string(), pa.string())),
            ("size", pa.int64()),
            ("stats", pa.string()),
            ("stats_parsed", kind),
        ]
    )
    snapshot = with_adds(store_of(LONG, [], {}), pa.array(rows, member))
    assert skipping.prune(snapshot, equals(4))["path"].to_pylist() == ["f4"]


def with_adds(store: MemoryStore, adds: pa.Array) -> Snapshot:
    """Replaces the `add` rows of the table's checkpoint."""
    path = "_delta_log/00000000000000000000.checkpoint.parquet"
    header = pq.read_table(io.BytesIO(store.read(path))).select(["protocol", "metaData"])
    sink = io.BytesIO()
    pq.write_table(pa.concat_tables([header, pa.table({"add": adds})], promote_options="default"), sink)
    store.put(path, sink.getvalue())
    return opened(store, -1).snapshot()


def test_damaged_statistics_lead_to_an_error_not_to_an_answer() -> None:
    store = store_of(LONG, long_files(range(9)), FORMS["text"])
    path = "_delta_log/00000000000000000000.checkpoint.parquet"
    data = bytearray(store.read(path))
    chunks = pq.ParquetFile(io.BytesIO(bytes(data))).metadata.row_group(0)
    columns = [chunks.column(number) for number in range(chunks.num_columns)]
    chunk = next(column for column in columns if column.path_in_schema == "add.stats")
    data[chunk.data_page_offset + chunk.total_compressed_size // 2] ^= 0xFF
    store.put(path, bytes(data))
    snapshot = opened(store, -1).snapshot()
    assert snapshot.num_files == 9
    with pytest.raises(CorruptCheckpointError, match="checkpoint"):
        skipping.prune(snapshot, equals(3))
    with pytest.raises(CorruptCheckpointError, match="checkpoint"):
        _ = snapshot.files


def test_statistics_in_columns_give_the_same_answers_as_in_json() -> None:
    store = store_of(LONG, long_files(range(9)), FORMS["columns"])
    texts: list[Any] = opened(store, -1).snapshot().files["stats"].to_pylist()
    assert [json.loads(text)["minValues"]["c"] for text in texts] == list(range(9))
