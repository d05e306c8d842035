"""V2 checkpoints that this engine writes: with their file actions inside or in sidecars."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder

from dbt.adapters.silt.engine.kernel.errors import StorageError
from dbt.adapters.silt.engine.kernel.log import checkpoint_write
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.actions import DomainMetadata, Protocol, SetTransaction
from dbt.adapters.silt.engine.kernel.table.paths import (
    LAST_CHECKPOINT,
    LOG_FOLDER,
    SIDECAR_FOLDER,
    checkpoint_path,
    commit_path,
)
from tests.faulty_store import Fault, FaultKind, FaultyStore
from tests.memory_store import MemoryStore
from tests.unit.engine.kernel.log_builder import add, new_log, observed, put, reopened

V2 = {"delta.checkpointPolicy": "v2"}
PROTOCOL = Protocol(3, 7, ("v2Checkpoint",), ("v2Checkpoint", "domainMetadata", "appendOnly"))


def v2_log(store: Store, properties: Mapping[str, str] = V2, protocol: Protocol = PROTOCOL) -> DeltaLog:
    log = new_log(store, properties, ["day"], protocol)
    for version in range(1, 8):
        gone = [add(f"f{version - 3}", day="x").remove(log.clock.now_ms())] if version > 3 else []
        new = replace(add(f"f{version}", day=f"d{version}"), stats=f'{{"numRecords":{version},"minValues":{{"id":1}}}}')
        put(log, version, new, *gone, SetTransaction("app", version, 1), DomainMetadata("d", str(version)))
    return log


def top_files(store: Store) -> list[str]:
    return [status.name for status in store.list_from(LOG_FOLDER) if ".checkpoint." in status.name]


def top_rows(store: Store) -> list[dict[str, object]]:
    (name,) = top_files(store)
    rows = pq.read_table(io.BytesIO(store.read(f"{LOG_FOLDER}/{name}"))).to_pylist()
    return [{key: value for key, value in row.items() if value is not None} for row in rows]


@pytest.mark.parametrize("part_actions", [1, 3, 100])
@pytest.mark.parametrize("as_struct", ["true", "false"])
def test_a_v2_checkpoint_is_read_back_as_the_snapshot(
    part_actions: int, as_struct: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint_write, "PART_ACTIONS", part_actions)
    log = v2_log(MemoryStore(), {**V2, "delta.checkpoint.writeStatsAsStruct": as_struct})
    written, removed = log.snapshot(), log.tombstones(log.snapshot())
    log.checkpoint(written)
    for version in range(8):
        log.store.delete(commit_path(version))
    fresh = reopened(log)
    read = fresh.snapshot()
    assert observed(read) == observed(written)
    assert (read.metadata, read.protocol, read.transactions, read.domains) == (
        written.metadata,
        written.protocol,
        written.transactions,
        written.domains,
    )
    assert sorted(fresh.tombstones(read)["path"].to_pylist()) == sorted(removed["path"].to_pylist())


def test_few_files_are_stored_in_the_checkpoint_itself() -> None:
    log = v2_log(MemoryStore())
    log.checkpoint(log.snapshot())
    rows = top_rows(log.store)
    assert all(len(row) == 1 for row in rows)
    kinds = [next(iter(row)) for row in rows]
    assert kinds == [
        "checkpointMetadata",
        "protocol",
        "metaData",
        "txn",
        "domainMetadata",
        *["add"] * 3,
        *["remove"] * 4,
    ]
    assert rows[0]["checkpointMetadata"] == {"version": 7, "tags": [("numOfAddFiles", "3")]}
    assert log.store.status(checkpoint_path(7)) is None


def test_many_files_are_stored_in_sidecars_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_write, "PART_ACTIONS", 3)
    log = v2_log(MemoryStore())
    log.checkpoint(log.snapshot())
    sidecars = log.store.list_from(SIDECAR_FOLDER)
    parts = [pq.read_table(io.BytesIO(log.store.read(status.path))) for status in sidecars]
    assert sorted(part.num_rows for part in parts) == [1, 3, 3]
    assert {tuple(part.column_names) for part in parts} == {("add", "remove")}
    rows = top_rows(log.store)
    named = [row["sidecar"] for row in rows if "sidecar" in row]
    assert {(each["path"], each["sizeInBytes"]) for each in named} == {(s.name, s.size) for s in sidecars}  # type: ignore[index]
    assert not any("add" in row or "remove" in row for row in rows)
    tags = dict(rows[0]["checkpointMetadata"]["tags"])  # type: ignore[index]
    size = sum(status.size for status in sidecars)
    assert tags == {"numOfAddFiles": "3", "sidecarNumActions": "7", "sidecarSizeInBytes": str(size)}


def test_last_checkpoint_names_the_v2_checkpoint() -> None:
    log = v2_log(MemoryStore())
    log.checkpoint(log.snapshot())
    hint = json.loads(log.store.read(LAST_CHECKPOINT))
    status = log.store.status(f"{LOG_FOLDER}/{top_files(log.store)[0]}")
    assert status is not None
    assert hint["v2Checkpoint"].pop("modificationTime") > 0
    assert hint.pop("checksum")
    assert hint == {
        "version": 7,
        "size": 12,
        "sizeInBytes": status.size,
        "numOfAddFiles": 3,
        "v2Checkpoint": {"path": status.name, "sizeInBytes": status.size},
    }


@pytest.mark.parametrize(("properties", "protocol"), [({}, PROTOCOL), (V2, Protocol(1, 7, None, ("domainMetadata",)))])
def test_without_the_policy_or_the_feature_the_checkpoint_is_classic(
    properties: Mapping[str, str], protocol: Protocol
) -> None:
    log = v2_log(MemoryStore(), properties, protocol)
    log.checkpoint(log.snapshot())
    assert top_files(log.store) == [f"{7:020d}.checkpoint.parquet"]


def test_an_interrupted_checkpoint_is_not_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_write, "PART_ACTIONS", 2)
    log = v2_log(FaultyStore(MemoryStore()))
    assert isinstance(log.store, FaultyStore)
    for path in ("*_sidecars/*", "*.checkpoint.*"):
        log.store.faults.append(Fault("put", FaultKind.FAIL_BEFORE, path))
        with pytest.raises(StorageError):
            log.checkpoint(log.snapshot())
        assert top_files(log.store) == []
        assert reopened(log).snapshot().num_files == 3


@pytest.mark.parametrize("part_actions", [2, 100])
@pytest.mark.parametrize("as_json", ["true", "false"])
def test_another_engine_opens_a_table_from_this_engines_v2_checkpoint(
    tmp_path: Path, part_actions: int, as_json: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint_write, "PART_ACTIONS", part_actions)
    store = LocalStore(tmp_path)
    properties = {**V2, "delta.checkpoint.writeStatsAsStruct": "true", "delta.checkpoint.writeStatsAsJson": as_json}
    log = new_log(store, properties, ["day"], Protocol(3, 7, ("v2Checkpoint",), ("v2Checkpoint", "appendOnly")))
    for version in range(1, 13):
        pq.write_table(pa.table({"id": pa.array([version], pa.int64())}), tmp_path / f"f{version}.parquet")
        size = (tmp_path / f"f{version}.parquet").stat().st_size
        bound = f'"minValues":{{"id":{version}}},"maxValues":{{"id":{version}}},"nullCount":{{"id":0}}'
        put(log, version, add(f"f{version}.parquet", f"d {version}", f'{{"numRecords":1,{bound}}}', size))
        log.after_commit(version)
    for version in range(10):
        store.delete(commit_path(version))
    table = DeltaTable(str(tmp_path))
    assert table.version() == reopened(log).snapshot().version == 12
    # Its reader of Arrow data sets refuses the feature by name; its query engine reads it.
    assert query(table, "select id, day from t order by id") == [(n, f"d {n}") for n in range(1, 13)]
    assert query(table, "select id, day from t where id > 11") == [(12, "d 12")]
    assert sorted(pa.table(table.get_add_actions(flatten=True))["path"].to_pylist()) == sorted(
        f"f{version}.parquet" for version in range(1, 13)
    )


def query(table: DeltaTable, sql: str) -> list[tuple[int, str]]:
    found = pa.table(QueryBuilder().register("t", table).execute(sql))
    return [(row["id"], str(row["day"])) for row in found.to_pylist()]
