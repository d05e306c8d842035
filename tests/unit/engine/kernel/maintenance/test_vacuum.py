"""The files that VACUUM may delete: rules by example, and compared with an oracle over random histories."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt.adapters.silt.engine.kernel.errors import UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.files import deletion_vectors, z85
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.maintenance import vacuum
from dbt.adapters.silt.engine.kernel.table.actions import (
    Action,
    AddCDCFile,
    AddFile,
    CommitInfo,
    DeletionVector,
    RemoveFile,
)
from dbt.adapters.silt.engine.kernel.table.paths import LAST_VACUUM_INFO, LOG_FOLDER, commit_path, encode_path
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructField, StructType
from tests.examples import examples
from tests.fixed_clock import FixedClock
from tests.memory_store import MemoryStore
from tests.unit.engine.kernel.log_builder import METADATA, add, new_log, put

HOUR = 3_600_000
OURS = "0f0e0d0c-1111-2222-3333-444455556666"


@dataclass
class Table:
    """A table in memory whose clock the test moves."""

    log: DeltaLog
    clock: FixedClock
    version: int = 0
    vectors: int = field(default=0)

    def wait(self, hours: float) -> None:
        self.clock.at_ms += int(hours * HOUR)

    def commit(self, *actions: Action) -> None:
        self.version += 1
        put(self.log, self.version, CommitInfo(operation="WRITE"), *actions)

    def file(self, path: str) -> str:
        folder = path.rpartition("/")[0]
        if folder:
            self.log.store.make_folder(folder)
        self.log.store.put(path, b"data")
        return path

    def vector(self, prefix: str = "") -> DeletionVector:
        """Creates a deletion vector with its file."""
        self.vectors += 1
        vector = DeletionVector("u", prefix + z85.encode(uuid.UUID(int=self.vectors).bytes), 10, 1, 1)
        self.file(str(deletion_vectors.file_name(vector)))
        return vector

    def cutoff(self, hours: float) -> int:
        return self.clock.at_ms - int(hours * HOUR)

    def garbage(self, hours: float = 24) -> vacuum.Garbage:
        return self.garbage_before(self.cutoff(hours))

    def garbage_before(self, cutoff: int) -> vacuum.Garbage:
        snapshot = self.log.snapshot()
        return vacuum.untracked(self.log.store, snapshot, vacuum.needed(self.log, snapshot, cutoff), cutoff)

    def files(self, hours: float = 24) -> set[str]:
        return {file.path for file in self.garbage(hours).files}

    def lite(self, hours: float = 24) -> set[str]:
        return self.lite_before(self.cutoff(hours))

    def lite_before(self, cutoff: int) -> set[str]:
        keep = vacuum.needed(self.log, self.log.snapshot(), cutoff)
        return {file.path for file in vacuum.named_by_log(self.log, keep, cutoff).files}


def table(partition_columns: tuple[str, ...] = ()) -> Table:
    clock = FixedClock()
    log = new_log(MemoryStore(clock), partition_columns=partition_columns)
    return Table(DeltaLog(log.store, log.name, clock), clock)


def remove(path: str, at_ms: int | None, vector: DeletionVector | None = None) -> RemoveFile:
    return RemoveFile(path, at_ms, deletion_vector=vector)


def test_a_removed_file_is_deleted_when_no_version_within_the_retention_needs_it() -> None:
    made = table()
    made.commit(add(made.file("a")), add(made.file("b")))
    made.wait(100)
    made.commit(remove("a", made.clock.now_ms()))
    made.wait(23)
    assert made.files(24) == set()
    made.wait(2)
    assert made.files(24) == {"a"}


def test_a_file_of_the_version_at_the_cutoff_is_kept_regardless_of_its_tombstone() -> None:
    made = table()
    made.commit(add(made.file("a")), add(made.file("b")))
    made.wait(100)
    made.commit(remove("a", None), remove("b", 0))
    made.wait(23)
    assert made.files(24) == set()


def test_a_file_with_a_recent_tombstone_is_kept_regardless_of_its_commit() -> None:
    made = table()
    made.commit(add(made.file("a")))
    made.wait(1)
    made.commit(remove("a", made.clock.now_ms() + 50 * HOUR))
    made.wait(40)
    assert made.files(24) == set()


def test_recent_uncommitted_files_are_kept_for_their_writer() -> None:
    made = table()
    made.file(f"{OURS}/part-0")
    made.wait(23)
    made.file("part-1")
    assert made.files(24) == set()
    made.wait(2)
    assert made.files(24) == {f"{OURS}/part-0"}


@pytest.mark.parametrize(
    "path",
    [
        f"{OURS}/_temporary/0/part-0",
        f"{OURS}/_day_=1/part-0",
        f"{OURS}/.part-0.crc",
        "_temporary/0/_attempt/part-0",
        "_day=1/part-0",
        "day=1/part-0",
        "_change_data/cdc-0",
        "x9/deletion_vector_00000000-0000-0000-0000-0000000000ff.bin",
        ".part-0.parquet.crc",
        ".deletion_vector.bin.0123456789abcdef0123456789abcdef.tmp",
        "notes.txt",
    ],
)
def test_old_uncommitted_files_are_deleted(path: str) -> None:
    made = table()
    schema = StructType(tuple(StructField(name, PrimitiveType("string")) for name in ("id", "day", "_day")))
    made.commit(replace(METADATA, schema_string=schema.to_json(), partition_columns=("day", "_day")))
    made.file(path)
    made.wait(23)
    assert made.files(24) == set()
    made.wait(2)
    assert made.files(24) == {path}


@pytest.mark.parametrize(
    "path",
    [
        "_delta_log/_staged_commits/1.json",
        "_symlink_format_manifest/manifest",
        "_other=1/part-0",
        ".hidden/part-0",
        "_SUCCESS",
        "inner/table/_delta_log/0.json",
        "inner/table/part-0",
    ],
)
def test_a_file_of_another_program_is_kept(path: str) -> None:
    made = table()
    made.file(path)
    if "inner" in path:
        made.log.store.make_folder("inner/table/_delta_log")
    made.wait(1000)
    assert made.files(24) == set()


def test_a_checksum_file_is_kept_with_its_file() -> None:
    made = table()
    made.file(".a.crc")
    made.file(".b.crc")
    made.commit(add(made.file("a")), add(made.file("b")))
    made.commit(remove("b", made.clock.now_ms()))
    made.wait(25)
    assert made.files(24) == {"b", ".b.crc"}


def test_deletion_vectors_are_kept_as_long_as_a_version_needs_them() -> None:
    made = table()
    first, second = made.vector(), made.vector("ab")
    stats = '{"numRecords":3}'
    made.commit(AddFile(made.file("a"), {}, 10, 1, stats=stats, deletion_vector=first))
    made.wait(10)
    made.commit(remove("a", None, first), AddFile("a", {}, 10, 1, stats=stats, deletion_vector=second))
    made.wait(20)
    assert made.files(24) == set()
    made.wait(5)
    assert made.files(24) == {deletion_vectors.file_name(first)}


def test_change_files_are_deleted_with_their_version() -> None:
    made = table()
    made.commit(add(made.file("a")), AddCDCFile(made.file("_change_data/c0"), {}, 1))
    made.wait(25)
    made.commit(add(made.file("b")), AddCDCFile(made.file("_change_data/c1"), {}, 1))
    made.wait(1)
    assert made.files(24) == {"_change_data/c0"}


def test_quoted_and_absolute_paths_are_recognised() -> None:
    made = table(("day",))
    odd = made.file("day=a b%2Fc/part 0")
    root = made.log.store.root
    made.commit(add(encode_path(odd), "a b/c"), add(f"{root}/{made.file('x')}", "d"))
    made.commit(add("file:///elsewhere/table/part-7", "e"))
    made.file("copied/part-7")
    made.file("copied/part-8")
    made.wait(1000)
    assert made.files(24) == {"copied/part-8"}


def test_empty_folders_are_deleted() -> None:
    made = table()
    made.file(f"{OURS}/_day_=1/part-0")
    made.log.store.make_folder(f"{OURS}/_temporary/0")
    made.file("day=1/part-0")
    made.commit(add(made.file("day=1/part-1")))
    made.wait(25)
    made.log.store.make_folder("0a0b0c0d-1111-2222-3333-444455556666/_temporary/0")
    assert made.garbage(24).folders == (
        f"{OURS}/_day_=1",
        f"{OURS}/_temporary/0",
        f"{OURS}/_temporary",
        OURS,
    )


def test_lite_considers_only_files_removed_since_the_last_vacuum() -> None:
    made = table()
    made.file("never committed")
    made.commit(add(made.file("a")), add(made.file("b")))
    made.commit(remove("a", made.clock.now_ms()))
    made.wait(25)
    assert made.lite(24) == {"a"}
    vacuum.remember(made.log, made.cutoff(24))
    assert made.lite(24) == set()
    made.commit(remove("b", made.clock.now_ms()))
    made.wait(25)
    assert made.lite(24) == {"b"}


def test_lite_is_refused_if_the_log_was_cleaned_up_beyond_its_starting_point() -> None:
    made = table()
    made.commit(add(made.file("a")))
    made.commit(remove("a", made.clock.now_ms()), add(made.file("b")))
    made.log.checkpoint(made.log.snapshot_at(2))
    for version in (0, 1):
        made.log.store.delete(commit_path(version))
    made.wait(25)
    with pytest.raises(UnsupportedStatementError, match="from version 0 on"):
        made.lite(24)
    made.log.store.put(LAST_VACUUM_INFO, b'{"latestCommitVersionOutsideOfRetentionWindow":1}')
    assert made.lite(24) == {"a"}
    made.log.store.put(LAST_VACUUM_INFO, b"torn {")
    with pytest.raises(UnsupportedStatementError):
        made.lite(24)


Step = Callable[["History"], None]


@dataclass
class History:
    """A random history, with the files of each version."""

    table: Table = field(default_factory=table)
    active: dict[str, DeletionVector | None] = field(default_factory=dict)
    versions: list[set[str]] = field(default_factory=lambda: [set()])
    change_data: list[set[str]] = field(default_factory=lambda: [set()])
    tombstones: dict[frozenset[str], int] = field(default_factory=dict)
    names: int = 0

    def name(self) -> str:
        self.names += 1
        return (f"f{self.names}", f"day={self.names % 3}/f{self.names}", f"{OURS}/f{self.names}")[self.names % 3]

    def commit(self, *actions: AddFile | RemoveFile | AddCDCFile, feed: str | None = None) -> None:
        self.table.commit(*actions)
        self.versions.append({name for path in self.active for name in self.of(path)})
        self.change_data.append(set() if feed is None else {feed})

    def of(self, path: str) -> set[str]:
        vector = self.active[path]
        return {path} if vector is None else {path, str(deletion_vectors.file_name(vector))}

    def add(self) -> None:
        path = self.table.file(self.name())
        self.table.wait(1)
        self.active[path] = None
        self.commit(add(path))

    def remove(self, stated: int | None) -> None:
        for path in list(self.active)[:1]:
            at_ms = None if stated is None else self.table.clock.at_ms + stated * HOUR
            self.tombstones[frozenset(self.of(path))] = at_ms or 0
            vector = self.active.pop(path)
            feed = self.table.file(f"_change_data/c{self.names}")
            self.commit(remove(path, at_ms, vector), AddCDCFile(feed, {}, 1), feed=feed)

    def mark(self, stated: int | None) -> None:
        for path in list(self.active)[:1]:
            old, new = self.active[path], self.table.vector()
            at_ms = None if stated is None else self.table.clock.at_ms + stated * HOUR
            self.tombstones[frozenset(self.of(path))] = at_ms or 0
            self.active[path] = new
            file = AddFile(path, {}, 10, 1, stats='{"numRecords":9}', deletion_vector=new)
            self.commit(remove(path, at_ms, old), file)

    def bring_back(self, version: int) -> None:
        """Restores a version, as far as its files exist."""
        for path in sorted(self.versions[version % len(self.versions)]):
            is_data = not path.rpartition("/")[2].startswith("deletion_vector")
            if is_data and path not in self.active and self.table.log.store.status(path) is not None:
                self.active[path] = None
                self.tombstones.pop(frozenset({path}), None)  # an add ends the tombstone of the same file
                self.commit(add(path))

    def abandon(self) -> None:
        self.table.file(self.name())

    def checkpoint(self) -> None:
        self.table.log.checkpoint(self.table.log.snapshot())

    def vacuum(self, hours: int) -> None:
        """Compares the files to be deleted with the oracle, then deletes them."""
        cutoff = self.table.cutoff(hours)
        expected = {path for path in self.listed() if self.age(path) < cutoff} - self.needed(cutoff)
        assert {file.path for file in self.table.garbage_before(cutoff).files} == expected
        assert self.table.lite_before(cutoff) <= expected
        for path in expected:
            self.table.log.store.delete(path)
        assert self.table.garbage_before(cutoff).files == ()

    def needed(self, cutoff: int) -> set[str]:
        found = {name for names, at_ms in self.tombstones.items() if at_ms >= cutoff for name in names}
        for version, files in enumerate(self.versions):
            is_last = version == len(self.versions) - 1
            if is_last or self.age(commit_path(version + 1)) > cutoff:
                found |= files
                found |= set() if is_last else self.change_data[version + 1]
        return found

    def listed(self) -> set[str]:
        store = self.table.log.store

        def below(folder: str) -> set[str]:
            inner = (name for name in store.list_folders(folder) if name != LOG_FOLDER)
            found = {status.path for status in store.list_from(folder)}
            return found.union(*(below(f"{folder}/{name}" if folder else name) for name in inner))

        return below("")

    def age(self, path: str) -> int:
        status = self.table.log.store.status(path)
        assert status is not None
        return status.modified_ms


# The age in a tombstone: missing, or hours from its commit.
STATED = st.sampled_from([None, -30, 0, 30])

STEPS: st.SearchStrategy[Step] = st.one_of(
    st.just(History.add),
    STATED.map(lambda stated: lambda history: history.mark(stated)),
    st.just(History.abandon),
    st.just(History.checkpoint),
    STATED.map(lambda stated: lambda history: history.remove(stated)),
    st.integers(0, 20).map(lambda version: lambda history: history.bring_back(version)),
    st.sampled_from([1, 20, 30]).map(lambda hours: lambda history: history.table.wait(hours)),
    st.sampled_from([0, 1, 24, 48]).map(lambda hours: lambda history: history.vacuum(hours)),
)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(STEPS, min_size=5, max_size=25), st.sampled_from([1, 24]))
def test_all_old_files_are_deleted_except_those_that_a_version_within_the_retention_needs(
    steps: list[Step], hours: int
) -> None:
    history = History()
    for step in steps:
        step(history)
    history.vacuum(hours)


def test_the_tombstone_of_a_restored_file_does_not_protect_it() -> None:
    history = History()
    history.add()
    history.mark(30)
    history.remove(None)
    history.bring_back(1)
    history.remove(None)
    history.add()
    history.vacuum(1)
