"""External files in an object store after concurrent runs, killed runs and faults."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.silt.engine.kernel.clock import SystemClock
from dbt.adapters.silt.engine.kernel.errors import StorageError
from dbt.adapters.silt.engine.kernel.storage.store import PrefixStore
from dbt.adapters.silt.materializations.external.object_files import ObjectFiles
from dbt.adapters.silt.materializations.external.target import ExternalTarget, target_of
from tests.faulty_store import Fault, FaultKind, FaultyStore
from tests.fixed_clock import FixedClock
from tests.memory_object_store import MemoryObjectStore
from tests.unit.engine.house import side_by_side

MARKER = "out/_dbt_silt.json"
WEEK_MS = 7 * 24 * 3600 * 1000


def target(name: str = "out", node: str = "model.shop.exported", **config: Any) -> ExternalTarget:
    return target_of({"unique_id": node, "config": config}, f"s3://bucket/exports/{name}", "/project", [])


def run(store: PrefixStore, to: ExternalTarget, *parts: str, rows: bytes = b"rows") -> ObjectFiles:
    """Returns a run that has staged its files and not yet put them in place."""
    files = ObjectFiles.of_run(store, to)
    for part in parts or ("part-00000-aa.c000.snappy.parquet",):
        store.put(f"{files._staged}/{part}", rows)
    return files


def write(store: PrefixStore, to: ExternalTarget, *parts: str, rows: bytes = b"rows") -> None:
    files = run(store, to, *parts, rows=rows)
    files.check()
    with files.staged():
        files.put_in_place()


def names(store: PrefixStore) -> list[str]:
    return sorted(each.path for each in store.files_below(""))


def marked(store: PrefixStore) -> list[str]:
    """Returns the files that the marker names, and checks that no other files exist."""
    found = json.loads(store.read(MARKER))
    assert found["node"] == "model.shop.exported"
    assert names(store) == sorted([MARKER, *(f"out/{each}" for each in found["files"])])
    return [str(each) for each in found["files"]]


def test_a_file_is_put_in_place_and_replaced() -> None:
    store = MemoryObjectStore()
    for rows in (b"old", b"new"):
        write(store, target("rows.csv"), "part-00000-aa.c000.csv", rows=rows)
        assert store.read("rows.csv") == rows
    assert names(store) == ["rows.csv"]


def test_a_folder_has_the_files_of_the_last_run_with_their_folders_and_endings() -> None:
    store = MemoryObjectStore()
    write(store, target(), "p=a/part-00000-aa.c000.snappy.parquet", "p=b/part-00000-aa.c000.snappy.parquet", "_SUCCESS")
    first = marked(store)
    assert [name[: len("p=a/part-00000-")] for name in first] == ["p=a/part-00000-", "p=b/part-00001-"]
    assert {name.partition(".")[2] for name in first} == {"c000.snappy.parquet"}
    write(store, target(), "part-00000-bb.c000.snappy.parquet")
    assert len(marked(store)) == 1
    write(store, target(), "_SUCCESS")
    assert marked(store) == []


def test_a_run_stages_files_outside_the_target_and_deletes_them_if_it_fails() -> None:
    store = MemoryObjectStore()
    write(store, target())
    before = names(store)
    files = run(store, target())
    with pytest.raises(ValueError, match="the query"), files.staged() as url:
        assert url.startswith(f"{store.root}/.dbt_silt/out.")
        raise ValueError("the query")
    assert names(store) == before


@pytest.mark.parametrize(
    ("there", "said"),
    [
        ({"out/mine.csv": b"x"}, "it has no record that this model wrote it"),
        ({"out/mine.csv": b"x", MARKER: b"nonsense"}, "it has no record"),
        ({MARKER: b'{"node": "model.shop.other", "files": []}'}, "model.shop.other wrote it"),
        ({MARKER: b'{"node": "model.shop.exported", "files": ["a"]}', "out/a": b"x", "out/b": b"x"}, "holds `b`"),
        ({"out": b"x"}, "it is a file"),
    ],
)
def test_files_of_another_writer_are_not_changed(there: dict[str, bytes], said: str) -> None:
    store = MemoryObjectStore()
    for name, data in there.items():
        store.put(name, data)
    with pytest.raises(DbtRuntimeError, match=said):
        write(store, target())
    assert {name: store.read(name) for name in names(store) if name[0] != "."} == there


def test_a_file_that_another_writer_adds_during_the_run_is_not_changed() -> None:
    store = MemoryObjectStore()
    files = run(store, target())
    files.check()
    store.put("out/mine.csv", b"x")
    with pytest.raises(DbtRuntimeError, match="no record"), files.staged():
        files.put_in_place()
    assert names(store) == ["out/mine.csv"]


def test_a_folder_at_the_location_of_a_file_is_refused() -> None:
    store = MemoryObjectStore()
    store.put("rows.csv/x", b"x")
    with pytest.raises(DbtRuntimeError, match="is a folder"):
        ObjectFiles.of_run(store, target("rows.csv")).check()


def test_folder_markers_and_hidden_files_do_not_count_as_files_of_another_writer() -> None:
    store = MemoryObjectStore()
    for name in ("out", "out/p=a", "out/_SUCCESS"):
        store.put(name, b"")
    write(store, target())
    assert json.loads(store.read(MARKER))["node"] == "model.shop.exported"


def test_a_run_that_another_run_overtook_fails_and_keeps_the_files_of_that_run() -> None:
    store = MemoryObjectStore()
    write(store, target())

    class Overtaken(FaultyStore):
        def copy_file(self, source: str, target_: str) -> None:
            super().copy_file(source, target_)
            write(store, target(), rows=b"of the other")

    files = run(store, target(), rows=b"of the loser")
    late = ObjectFiles(Overtaken(store), files.target, files.run, files.clock)
    with pytest.raises(DbtRuntimeError, match="replaced"), late.staged():
        late.put_in_place()
    assert [store.read(f"out/{name}") for name in marked(store)] == [b"of the other"]


@pytest.mark.parametrize("place", ["out", "rows.parquet"])
def test_eight_concurrent_runs_leave_the_complete_files_of_one_run(place: str) -> None:
    store, failed = MemoryObjectStore(SystemClock()), []

    def many() -> None:
        for _ in range(20):
            try:
                files = ObjectFiles.of_run(store, target(place))
                for number in range(3 if place == "out" else 1):
                    store.put(f"{files._staged}/part-0000{number}-aa.c000.parquet", files.run.encode())
                with files.staged():
                    files.put_in_place()
            except DbtRuntimeError as error:
                failed.append(str(error))

    side_by_side([many] * 8)
    assert all("another run of" in each for each in failed)
    if place == "out":
        assert len({store.read(f"out/{name}") for name in marked(store)}) == 1 and len(marked(store)) == 3
    else:
        assert names(store) == [place] and not failed


def test_the_next_run_deletes_files_that_killed_runs_copied() -> None:
    store = MemoryObjectStore()

    class Killed(FaultyStore):
        def swap_if_unchanged(self, *_: Any) -> Any:
            raise KeyboardInterrupt

        def put_if_absent(self, *_: Any) -> Any:
            raise KeyboardInterrupt

    for _ in range(3):
        files = run(store, target())
        with pytest.raises(KeyboardInterrupt), files.staged():
            ObjectFiles(Killed(store), files.target, files.run, files.clock).put_in_place()
    assert len(names(store)) == 3
    write(store, target())
    assert len(marked(store)) == 1


def test_a_lost_answer_for_the_marker_is_settled_by_reading_the_marker() -> None:
    store = MemoryObjectStore()
    for operation in ("put_if_absent", "swap_if_unchanged"):
        write(FaultyStore(store, [Fault(operation, FaultKind.FAIL_AFTER)]), target())
        assert len(marked(store)) == 1
    before = store.read(MARKER)
    files = run(store, target())
    with pytest.raises(StorageError), files.staged():
        ObjectFiles(
            FaultyStore(store, [Fault("swap_if_unchanged", FaultKind.FAIL_BEFORE)]),
            files.target,
            files.run,
            files.clock,
        ).put_in_place()
    assert store.read(MARKER) == before
    write(store, target())
    assert len(marked(store)) == 1


def test_a_failed_copy_keeps_the_previous_files() -> None:
    store = MemoryObjectStore()
    write(store, target())
    before = {name: store.read(name) for name in names(store)}
    faults = [Fault("copy_file", FaultKind.FAIL_AFTER, skip=1)]
    with pytest.raises(StorageError):
        write(FaultyStore(store, faults), target(), "part-0.c000.parquet", "part-1.c000.parquet")
    assert {name: store.read(name) for name in names(store)} == before


def test_staged_files_of_killed_runs_are_deleted_after_a_week() -> None:
    clock = FixedClock()
    store = MemoryObjectStore(clock)
    store.put(".dbt_silt/out.old/part-0", b"x")
    store.put(".dbt_silt/out.used/part-0", b"x")
    clock.at_ms += WEEK_MS
    store.put(".dbt_silt/out.used/part-1", b"x")
    clock.at_ms += 1
    with ObjectFiles.of_run(store, target(), clock).staged():
        pass
    assert names(store) == [".dbt_silt/out.used/part-0", ".dbt_silt/out.used/part-1"]


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("s3://bucket", "whole bucket"),
        ("s3://bucket/*.csv", "pattern"),
        ("s3://bucket/a//b", "empty part"),
        ("wasb://x@y.z/a", "not supported"),
        ("s3a://bucket/house/main/x", "in the warehouse s3://bucket/house"),
        ("s3://bucket", "whole bucket"),
        ("s3://bucket/hou", None),
        ("s3://other/house", None),
    ],
)
def test_a_location_must_be_a_path_outside_the_warehouse(location: str, said: str | None) -> None:
    model = {"unique_id": "m", "config": {}}

    def made() -> ExternalTarget:
        return target_of(model, location, "/project", ["/warehouse", "s3://bucket/house"])

    if said is None:
        assert made().location == location and made().is_object
    else:
        with pytest.raises(DbtRuntimeError, match=said):
            made()


def test_a_location_that_contains_the_warehouse_is_refused() -> None:
    with pytest.raises(DbtRuntimeError, match="in the warehouse"):
        target_of({"unique_id": "m", "config": {}}, "gs://b/a", "/project", ["gs://b/a/house"])
