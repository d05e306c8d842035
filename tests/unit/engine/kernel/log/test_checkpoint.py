"""Checkpoints are read back as written, and checkpoints of other writers are read."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt.adapters.silt.engine.kernel.errors import CorruptCheckpointError
from dbt.adapters.silt.engine.kernel.log.checkpoint_write import json_checksum
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table import active_files
from dbt.adapters.silt.engine.kernel.table.actions import (
    AddFile,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from dbt.adapters.silt.engine.kernel.table.paths import LAST_CHECKPOINT, checkpoint_path, commit_path, decode_path
from tests.examples import examples
from tests.fixed_clock import FixedClock
from tests.memory_store import MemoryStore
from tests.unit.engine.kernel.log_builder import METADATA, PROTOCOL, SCHEMA, add, new_log, observed, put, reopened

TEXT = st.text(max_size=5)
MAPS = st.dictionaries(TEXT, TEXT, max_size=3)
FILES = st.lists(
    st.builds(
        AddFile,
        path=TEXT.filter(lambda path: active_files.KEY_SEPARATOR not in decode_path(path)),  # no file has such a name
        partition_values=st.dictionaries(TEXT, st.one_of(st.none(), TEXT), max_size=2),
        size=st.integers(0, 2**53 - 1),
        modification_time=st.integers(0, 2**62),
        stats=st.one_of(st.none(), TEXT),
        tags=st.one_of(st.none(), MAPS),
        base_row_id=st.one_of(st.none(), st.integers(0, 9)),
        clustering_provider=st.one_of(st.none(), TEXT),
    ),
    max_size=6,
    unique_by=lambda action: active_files.file_key(action.path, None),
)
METADATAS = st.builds(
    Metadata,
    id=TEXT,
    schema_string=st.just(METADATA.schema_string),
    partition_columns=st.lists(st.sampled_from(SCHEMA.names), max_size=2, unique=True).map(tuple),
    configuration=MAPS,
    name=st.one_of(st.none(), TEXT),
    description=st.one_of(st.none(), TEXT),
    created_time=st.one_of(st.none(), st.integers(0, 2**62)),
)


@given(
    FILES,
    METADATAS,
    st.sampled_from([Protocol(1, 2), Protocol(3, 7, (), ()), Protocol(1, 7, None, ("appendOnly",))]),
    st.lists(
        st.builds(SetTransaction, TEXT, st.integers(0, 9), st.integers(0, 9)), unique_by=lambda t: t.app_id, max_size=3
    ),
    st.lists(st.builds(DomainMetadata, TEXT, TEXT), unique_by=lambda d: d.domain, max_size=3),
)
@settings(max_examples=examples(40), deadline=None)
def test_a_checkpoint_is_read_back_as_the_snapshot(
    adds: Sequence[AddFile],
    metadata: Metadata,
    protocol: Protocol,
    transactions: Sequence[SetTransaction],
    domains: Sequence[DomainMetadata],
) -> None:
    log = DeltaLog(MemoryStore(), "t", FixedClock())
    log.store.make_folder("_delta_log")
    put(log, 0, protocol, metadata, *adds, *transactions, *domains)
    written = log.snapshot()
    log.checkpoint(written)
    log.store.delete(commit_path(0))
    read = reopened(log).snapshot()
    assert observed(read) == observed(written)
    assert (read.version, read.metadata, read.protocol) == (written.version, written.metadata, written.protocol)
    assert read.transactions == written.transactions and read.domains == written.domains


def rows_of(store: Store, version: int) -> pa.Table:
    return pq.read_table(io.BytesIO(store.read(checkpoint_path(version))))


def test_a_checkpoint_contains_live_tombstones_and_no_expired_ones() -> None:
    log = new_log(configuration={"delta.deletedFileRetentionDuration": "interval 1 hour"})
    clock = log.clock
    assert isinstance(clock, FixedClock)
    put(log, 1, *(add(name) for name in "abcd"))
    put(
        log,
        2,
        RemoveFile("a", clock.at_ms - 3_601_000, partition_values={"day": None}, size=10),
        RemoveFile("b", clock.at_ms, partition_values={"day": None}, size=10, extended_file_metadata=True),
        RemoveFile("c", None),
    )
    log.checkpoint(log.snapshot())
    removes = [remove for remove in rows_of(log.store, 2)["remove"].to_pylist() if remove]
    assert [(remove["path"], remove["size"], remove["extendedFileMetadata"]) for remove in removes] == [("b", 10, True)]
    put(log, 3, add("b"), add("d").remove(clock.at_ms))
    log.checkpoint(reopened(log).snapshot())
    assert [remove["path"] for remove in rows_of(log.store, 3)["remove"].to_pylist() if remove] == ["d"]


def test_a_checkpoint_has_one_action_a_row_and_no_action_that_changes_data() -> None:
    log = new_log()
    put(log, 1, add("a", stats='{"numRecords":1}'), add("b"), SetTransaction("app", 1, 1), DomainMetadata("d", "{}"))
    put(log, 2, add("b").remove(log.clock.now_ms()), DomainMetadata("d", "{}", removed=True))
    log.checkpoint(log.snapshot())
    rows = rows_of(log.store, 2).to_pylist()
    assert all(sum(value is not None for value in row.values()) == 1 for row in rows)
    assert [next(key for key, value in row.items() if value) for row in rows] == [
        "protocol",
        "metaData",
        "txn",
        "add",
        "remove",
    ]
    files = [row["add"] or row["remove"] for row in rows[3:]]
    assert [file["dataChange"] for file in files] == [False, False]
    assert files[0]["stats"] == '{"numRecords":1}'


def test_a_checkpoint_drops_expired_transactions_and_keeps_every_domain() -> None:
    log = new_log(
        configuration={"delta.setTransactionRetentionDuration": "interval 1 hour"},
        protocol=Protocol(1, 7, None, ("domainMetadata",)),
    )
    clock = log.clock
    assert isinstance(clock, FixedClock)
    put(log, 1, SetTransaction("old", 1, clock.at_ms), SetTransaction("untimed", 1), DomainMetadata("unknown.x", "{}"))
    clock.at_ms += 3_600_000
    put(log, 2, SetTransaction("new", 2, clock.at_ms))
    log.checkpoint(reopened(log).snapshot())
    rows = rows_of(log.store, 2)
    assert [txn["appId"] for txn in rows["txn"].to_pylist() if txn] == ["new"]
    assert [domain["domain"] for domain in rows["domainMetadata"].to_pylist() if domain] == ["unknown.x"]


def test_last_checkpoint_names_the_checkpoint() -> None:
    log = new_log(extra=[add("a")])
    log.checkpoint(log.snapshot())
    hint = json.loads(log.store.read(LAST_CHECKPOINT))
    status = log.store.status(checkpoint_path(0))
    assert status is not None
    assert hint.pop("checksum") == json_checksum(hint)
    assert hint == {"version": 0, "size": 3, "sizeInBytes": status.size, "numOfAddFiles": 1}


def test_the_checksum_of_last_checkpoint_follows_the_specification() -> None:
    body = (
        """{"k0":"'v 0'", "checksum": "adsaskfljadfkjadfkj", "k1":{"k2": 2, "k3": ["v3", [1, 2], """
        """{"k4": "v4", "k5": ["v5", "v6", "v7"]}]}}"""
    )
    assert json_checksum(json.loads(body)) == "6a92d155a59bf2eecbd4b4ec7fd1f875"


@pytest.mark.parametrize("as_json", ["true", "false"])
@pytest.mark.parametrize("as_struct", ["true", "false"])
def test_statistics_are_written_in_the_forms_that_the_table_requests(as_json: str, as_struct: str) -> None:
    configuration = {"delta.checkpoint.writeStatsAsJson": as_json, "delta.checkpoint.writeStatsAsStruct": as_struct}
    log = new_log(configuration=configuration, extra=[add("a", stats='{"numRecords":3,"minValues":{"id":1}}')])
    log.checkpoint(log.snapshot())
    (row,) = (row for row in rows_of(log.store, 0)["add"].to_pylist() if row)
    assert ("stats" in row) == (as_json == "true")
    assert ("stats_parsed" in row) == (as_struct == "true")
    log.store.delete(commit_path(0))
    statistics = reopened(log).snapshot().files["stats"].to_pylist()[0]
    assert (statistics is not None) == ("true" in (as_json, as_struct))


# Checkpoints of other writers: each is the base of a table whose commits are gone.

LOG = "_delta_log"
ADDS = [
    {
        "path": f"f{n}",
        "partitionValues": [("day", str(n))],
        "size": n,
        "modificationTime": 1,
        "dataChange": False,
        "stats": f'{{"numRecords":{n}}}',
    }
    for n in range(6)
]
HEADER = [
    {"protocol": PROTOCOL.to_json()},
    {
        "metaData": {
            **METADATA.to_json(),
            "configuration": [("a", "b")],
            "format": {"provider": "parquet", "options": []},
        }
    },
    {"txn": {"appId": "app", "version": 3, "lastUpdated": 4}},
]
MAP = pa.map_(pa.string(), pa.string())
ADD = pa.struct(
    [
        ("path", pa.string()),
        ("partitionValues", MAP),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
        ("stats", pa.string()),
    ]
)
HEADER_SCHEMA = [
    ("protocol", pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())])),
    (
        "metaData",
        pa.struct(
            [
                ("id", pa.string()),
                ("format", pa.struct([("provider", pa.string()), ("options", MAP)])),
                ("schemaString", pa.string()),
                ("partitionColumns", pa.list_(pa.string())),
                ("configuration", MAP),
                ("createdTime", pa.int64()),
            ]
        ),
    ),
    ("txn", pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])),
]
SIDECAR = ("sidecar", pa.struct([("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64())]))
UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"


def foreign_table() -> DeltaLog:
    log = DeltaLog(MemoryStore(), "t")
    log.store.make_folder(f"{LOG}/_sidecars")
    return log


def write(store: Store, path: str, rows: Sequence[object], schema: Sequence[tuple[str, pa.DataType]]) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows), schema=pa.schema(schema)), sink)
    store.put(path, sink.getvalue())


def check(log: DeltaLog) -> Snapshot:
    snapshot = log.snapshot()
    files = snapshot.files.sort_by("path")
    assert files["path"].to_pylist() == [f"f{n}" for n in range(6)]
    assert [json.loads(text)["numRecords"] for text in files["stats"].to_pylist()] == list(range(6))
    assert [dict(values) for values in files["partition_values"].to_pylist()] == [{"day": str(n)} for n in range(6)]
    assert snapshot.transaction_version("app") == 3
    assert snapshot.metadata.id == METADATA.id and snapshot.version == 10
    return snapshot


def test_a_checkpoint_in_several_parts_is_read() -> None:
    log = foreign_table()
    name = f"{LOG}/{10:020d}.checkpoint.{{:010d}}.{3:010d}.parquet"
    parts = [
        [{"add": ADDS[0]}],
        [*HEADER, *({"add": body} for body in ADDS[1:3])],
        [{"add": body} for body in ADDS[3:]],
    ]
    for number, rows in enumerate(parts, start=1):
        write(log.store, name.format(number), rows, [*HEADER_SCHEMA, ("add", ADD)])
    check(log)


def test_a_checkpoint_with_a_missing_part_is_ignored() -> None:
    log = new_log()
    for number in (1, 3):
        log.store.put(f"{LOG}/{0:020d}.checkpoint.{number:010d}.{3:010d}.parquet", b"never read")
    put(log, 1, add("a"))
    assert reopened(log).snapshot().num_files == 1


def test_a_json_checkpoint_with_sidecars_is_read() -> None:
    log = foreign_table()
    metadata = METADATA.to_json()
    lines: list[object] = [
        {"checkpointMetadata": {"version": 10}},
        {"protocol": PROTOCOL.to_json()},
        {"metaData": metadata},
        {"txn": {"appId": "app", "version": 3}},
    ]
    for number, half in enumerate((ADDS[:2], ADDS[2:])):
        write(log.store, f"{LOG}/_sidecars/part {number}.parquet", [{"add": body} for body in half], [("add", ADD)])
        lines.append({"sidecar": {"path": f"part%20{number}.parquet", "sizeInBytes": 1, "modificationTime": 1}})
    text = "\n".join(json.dumps(line) for line in lines)
    log.store.put(f"{LOG}/{10:020d}.checkpoint.{UUID}.json", text.encode())
    check(log)


def test_a_json_checkpoint_with_embedded_files_is_read() -> None:
    log = foreign_table()
    lines = [
        {"protocol": PROTOCOL.to_json()},
        {"metaData": METADATA.to_json()},
        {"txn": {"appId": "app", "version": 3}},
        *({"add": {**body, "partitionValues": dict(body["partitionValues"])}} for body in ADDS),  # type: ignore[call-overload]
        {"remove": {"path": "gone", "deletionTimestamp": 5, "dataChange": False}},
    ]
    log.store.put(f"{LOG}/{10:020d}.checkpoint.{UUID}.json", "\n".join(map(json.dumps, lines)).encode())
    assert log.tombstones(check(log))["path"].to_pylist() == ["gone"]


def put_json_checkpoint(log: DeltaLog, *more: dict[str, object]) -> None:
    """Writes a checkpoint of an empty table, with more actions."""
    lines = [{"protocol": PROTOCOL.to_json()}, {"metaData": METADATA.to_json()}, *more]
    log.store.put(f"{LOG}/{10:020d}.checkpoint.{UUID}.json", "\n".join(map(json.dumps, lines)).encode())


def test_a_domain_that_a_checkpoint_lists_as_removed_is_removed() -> None:
    log = foreign_table()
    kept, gone = ({"domain": name, "configuration": "{}", "removed": name == "gone"} for name in ("kept", "gone"))
    put_json_checkpoint(log, {"domainMetadata": kept}, {"domainMetadata": gone})
    assert list(log.snapshot().domains) == ["kept"]


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ({"protocol": PROTOCOL.to_json()}, "it has 2 `protocol` actions instead of one"),
        ({"metaData": METADATA.to_json()}, "it has 2 `metaData` actions instead of one"),
        ({"sidecar": {"path": "../other.parquet"}}, "is not in _delta_log/_sidecars"),
        ({"sidecar": {"path": "%2E%2E/other.parquet"}}, "is not in _delta_log/_sidecars"),
        ({"sidecar": {"path": "/other.parquet"}}, "is not in _delta_log/_sidecars"),
        ({"sidecar": {"path": "s3://bucket/other.parquet"}}, "is not in _delta_log/_sidecars"),
        ({"txn": {"appId": "app"}}, "cannot be read"),
    ],
)
def test_a_checkpoint_with_a_damaged_action_is_named(action: dict[str, object], said: str) -> None:
    log = foreign_table()
    put_json_checkpoint(log, action)
    with pytest.raises(CorruptCheckpointError, match=r"checkpoint.*\.json cannot be read") as caught:
        log.snapshot()
    assert said in str(caught.value)


@pytest.mark.parametrize("name", [f"{10:020d}.checkpoint.{UUID}.parquet", f"{10:020d}.checkpoint.parquet"])
def test_a_parquet_checkpoint_with_sidecars_is_read(name: str) -> None:
    log = foreign_table()
    write(log.store, f"{LOG}/_sidecars/s.parquet", [{"add": body} for body in ADDS], [("add", ADD)])
    rows = [*HEADER, {"sidecar": {"path": "s.parquet", "sizeInBytes": 1, "modificationTime": 1}}]
    write(log.store, f"{LOG}/{name}", rows, [*HEADER_SCHEMA, SIDECAR])
    check(log)


def test_a_checkpoint_with_a_missing_sidecar_is_unreadable() -> None:
    log = new_log(extra=[add("a")])
    rows = [*HEADER, {"sidecar": {"path": "s.parquet", "sizeInBytes": 1, "modificationTime": 1}}]
    write(log.store, f"{LOG}/{0:020d}.checkpoint.parquet", rows, [*HEADER_SCHEMA, SIDECAR])
    assert reopened(log).snapshot().files["path"].to_pylist() == ["a"]


def test_of_two_checkpoints_of_one_version_the_readable_one_is_used() -> None:
    log = foreign_table()
    write(
        log.store,
        f"{LOG}/{10:020d}.checkpoint.parquet",
        [*HEADER, *({"add": b} for b in ADDS)],
        [*HEADER_SCHEMA, ("add", ADD)],
    )
    log.store.put(f"{LOG}/{10:020d}.checkpoint.{UUID}.parquet", b"PAR1cut")
    check(log)


def test_statistics_in_columns_are_read_if_their_json_is_missing() -> None:
    log = foreign_table()
    stats = pa.struct([("numRecords", pa.int64()), ("minValues", pa.struct([("id", pa.int64())]))])
    kind = pa.struct([*(member for member in ADD if member.name != "stats"), pa.field("stats_parsed", stats)])
    rows = [
        {"add": {**body, "stats_parsed": {"numRecords": n, "minValues": {"id": n * 10}}}} for n, body in enumerate(ADDS)
    ]
    write(log.store, f"{LOG}/{10:020d}.checkpoint.parquet", [*HEADER, *rows], [*HEADER_SCHEMA, ("add", kind)])
    texts = check(log).files.sort_by("path")["stats"].to_pylist()
    assert texts[3] == '{"numRecords":3,"minValues":{"id":30}}'


def with_texts_as(kind: pa.DataType, text: pa.DataType) -> pa.DataType:
    """Returns the type with another type for the strings inside of it."""
    if pa.types.is_struct(kind):
        return pa.struct([(member.name, with_texts_as(member.type, text)) for member in kind])
    if pa.types.is_map(kind):
        return pa.map_(with_texts_as(kind.key_type, text), with_texts_as(kind.item_type, text))
    if pa.types.is_list(kind):
        return pa.list_view(with_texts_as(kind.value_type, text))
    return text if pa.types.is_string(kind) else kind


@pytest.mark.parametrize(
    "text", [pa.string_view(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())], ids=lambda text: str(text)
)
def test_a_checkpoint_with_any_arrow_string_types_is_read(text: pa.DataType) -> None:
    log = foreign_table()
    schema = [(name, with_texts_as(kind, text)) for name, kind in [*HEADER_SCHEMA, ("add", ADD)]]
    path = f"{LOG}/{10:020d}.checkpoint.parquet"
    write(log.store, path, [*HEADER, *({"add": body} for body in ADDS)], schema)
    asked_for = pq.read_schema(io.BytesIO(log.store.read(path))).field("add").type.field("path").type
    assert asked_for == text
    check(log)


@pytest.mark.parametrize("partition_columns", [[], ["day"]])
def test_files_without_partition_values_are_files_of_an_unpartitioned_table(partition_columns: list[str]) -> None:
    log = foreign_table()
    protocol, metadata, _ = HEADER
    partitioned = {"metaData": {**metadata["metaData"], "partitionColumns": partition_columns}}
    rows = [protocol, partitioned, {"add": {**ADDS[0], "partitionValues": None}}]
    write(log.store, f"{LOG}/{10:020d}.checkpoint.parquet", rows, [*HEADER_SCHEMA, ("add", ADD)])
    if partition_columns:
        with pytest.raises(CorruptCheckpointError, match="1 files have no partitionValues"):
            log.snapshot()
    else:
        assert log.snapshot().files["partition_values"].to_pylist() == [[]]


def test_another_engine_opens_a_table_from_this_engines_checkpoint(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    log = new_log(store, partition_columns=["day"], configuration={"delta.appendOnly": "false"})
    for version in range(1, 24):
        data = pa.table({"id": pa.array([version], pa.int64())})
        pq.write_table(data, tmp_path / f"f {version}.parquet")
        size = (tmp_path / f"f {version}.parquet").stat().st_size
        new = replace(add(f"f%20{version}.parquet", day=f"d {version}", size=size), stats='{"numRecords":1}')
        old = [replace(add(f"f%20{version - 1}.parquet", day=f"d {version - 1}")).remove(log.clock.now_ms())]
        put(log, version, new, *(old if version % 5 == 0 else ()), SetTransaction("app", version, 1))
        log.after_commit(version)
    for version in range(20):
        store.delete(commit_path(version))
    table = DeltaTable(str(tmp_path))
    snapshot = reopened(log).snapshot()
    assert table.version() == snapshot.version == 23
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == sorted(
        int(path.removeprefix("f%20").removesuffix(".parquet")) for path in snapshot.files["path"].to_pylist()
    )
    assert table.transaction_version("app") == snapshot.transaction_version("app") == 23
