"""Replay: the state after a log's commits, compared with a naive replay."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt.adapters.silt.engine.kernel.table import active_files
from dbt.adapters.silt.engine.kernel.table.actions import (
    Action,
    AddFile,
    CommitInfo,
    DeletionVector,
    DomainMetadata,
    RemoveFile,
    SetTransaction,
)
from tests.examples import examples
from tests.memory_store import MemoryStore
from tests.unit.engine.kernel.log_builder import NaiveTable, add, new_log, observed, put, reopened, without_tombstones

LONG = "p=a b/part-00001-0a1b2c3d-1111-2222-3333-444455556666-c000.snappy.parquet"
NAMES = [
    "a",
    "b",
    LONG.replace(" ", "%20"),
    LONG.replace("00001", "00002"),
    "p=1/c",
    "p=a b/d",
    "p=%/é",
    "😊",
    "/abs/e",
]
SPELLINGS = {
    "p=a b/d": ["p=a%20b/d", "p=a b/d"],
    "p=%/é": ["p=%25/é", "p=%25/%C3%A9"],
    "/abs/e": ["/abs/e", "file:///abs/e"],
    LONG: [LONG.replace(" ", "%20"), LONG, LONG.replace("-", "%2D")],
    "/x/" + LONG: ["file:/x/" + LONG, "/x/" + LONG.replace(" ", "%20")],
}
VALUES = st.dictionaries(st.sampled_from(["day", "p"]), st.one_of(st.none(), st.text(max_size=3)), max_size=2)
TEXT_OR_NONE = st.one_of(st.none(), st.sampled_from(["", '{"numRecords":1}', "ü"]))
TAGS = st.one_of(st.none(), st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2))
INTEGERS = st.integers(0, 2**63 - 1)

ADDS = st.builds(
    AddFile,
    path=st.sampled_from(NAMES),
    partition_values=VALUES,
    size=st.integers(0, 2**40),
    modification_time=INTEGERS,
    data_change=st.booleans(),
    stats=TEXT_OR_NONE,
    tags=TAGS,
    base_row_id=st.one_of(st.none(), INTEGERS),
    default_row_commit_version=st.one_of(st.none(), INTEGERS),
    clustering_provider=TEXT_OR_NONE,
)
# Recent enough to be kept by checkpoints.
DELETED = st.integers(1_700_000_000_000, 1_800_000_000_000)
REMOVES = st.builds(RemoveFile, path=st.sampled_from(NAMES), deletion_timestamp=DELETED)
TRANSACTIONS = st.builds(SetTransaction, st.sampled_from("xyz"), st.integers(0, 9), st.none())
DOMAINS = st.builds(DomainMetadata, st.sampled_from(["d1", "d2"]), st.text(max_size=3), st.booleans())
COMMITS = st.lists(
    st.lists(
        st.one_of(ADDS, ADDS, REMOVES, TRANSACTIONS, DOMAINS), max_size=4, unique_by=lambda action: _thing(action)
    ),
    max_size=9,
)


def _thing(action: Action) -> tuple[str, str]:
    """Returns the identity that no commit may name twice."""
    name = next(getattr(action, field) for field in ("path", "app_id", "domain") if hasattr(action, field))
    return ("file" if isinstance(action, AddFile | RemoveFile) else action.key), name


@given(COMMITS, st.sets(st.integers(0, 9)), st.sets(st.integers(0, 9)))
@settings(max_examples=examples(60), deadline=None)
def test_the_columnar_state_equals_a_naive_replay(
    commits: Sequence[Sequence[Action]], checkpoints: set[int], refreshes: set[int]
) -> None:
    """The versions are spread over checkpoints and incremental refreshes in any way."""
    naive, log = NaiveTable(), new_log(MemoryStore())
    for version, actions in enumerate(commits, start=1):
        put(log, version, CommitInfo(), *actions)
        naive.apply(actions)
        if version in checkpoints:
            log.checkpoint(reopened(log).snapshot())
        if version in refreshes:
            assert observed(log.snapshot()) == without_tombstones(naive)
    assert observed(log.snapshot()) == without_tombstones(naive)
    fresh = reopened(log)
    snapshot = fresh.snapshot()
    assert observed(snapshot) == without_tombstones(naive)
    removed = fresh.tombstones(snapshot)["path"].to_pylist()
    assert sorted(removed) == sorted(path for path, _ in naive.removed)


@pytest.mark.parametrize("name", sorted(SPELLINGS))
def test_a_file_is_the_same_in_every_spelling_of_its_path(name: str) -> None:
    for first in SPELLINGS[name]:
        for second in SPELLINGS[name]:
            log = new_log()
            put(log, 1, add(first, size=1), add("other"))
            log.checkpoint(log.snapshot())
            put(log, 2, RemoveFile(second, 1))
            assert reopened(log).snapshot().files["path"].to_pylist() == ["other"]
            put(log, 3, add(first, size=2))
            put(log, 4, add(second, size=3))
            assert sorted(log.snapshot().files["size"].to_pylist()) == [3, 10]


def vector(name: str, offset: int | None = 1) -> DeletionVector:
    return DeletionVector("u", name, 40, 6, offset)


@pytest.mark.parametrize("old", [None, vector("v1"), vector("v1", None)])
def test_a_file_with_a_changed_vector_is_another_logical_file(old: DeletionVector | None) -> None:
    old_key, new_key = active_files.file_key("a", old), active_files.file_key("a", vector("v2"))
    files = active_files.files_table(
        [AddFile("a", {}, 1, 1, deletion_vector=old), AddFile("a", {}, 1, 1, deletion_vector=vector("v2")), add("b")]
    )
    assert active_files.keys_of(files).to_pylist() == [old_key, new_key, "b"]
    kept = active_files.add_files(active_files.without(files, [old_key]))
    assert [(action.path, action.deletion_vector) for action in kept] == [("a", vector("v2")), ("b", None)]


def test_a_file_that_gets_a_vector_is_counted_once_in_the_snapshot() -> None:
    log = new_log()
    plain = add("a")
    put(log, 1, plain, add("b"))
    with_vector = AddFile("a", {}, 1, 1, deletion_vector=vector("v1"))
    put(log, 2, plain.remove(1), with_vector)
    found = {each.path: each.deletion_vector for each in log.snapshot().add_files()}
    assert found == {"a": vector("v1"), "b": None}
    put(log, 3, with_vector.remove(1))
    assert log.snapshot().files["path"].to_pylist() == ["b"]


def test_batches_without_a_removed_file_are_shared_between_snapshots() -> None:
    first = active_files.files_table([add(f"a{n}") for n in range(10)])
    second = active_files.files_table([add(f"b{n}") for n in range(10)])
    both = active_files.appended(first, second)
    kept = active_files.without(both, ["b3"])
    assert kept.num_rows == 19
    assert _address(kept) == _address(first)


def _address(table: pa.Table) -> int:
    return int(table["path"].chunk(0).buffers()[2].address)


def test_many_small_appends_do_not_leave_many_small_batches() -> None:
    files = active_files.FILES.empty_table()
    for number in range(1_000):
        files = active_files.appended(files, active_files.files_table([add(f"f{number}")]))
    assert files.num_rows == 1_000
    assert files["path"].num_chunks < 300
    assert files["path"].to_pylist() == [f"f{number}" for number in range(1_000)]
