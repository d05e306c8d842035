"""A drop makes every concurrent writer conflict; after an interruption at any step, the table is complete or gone."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.folders import locks
from dbt.adapters.silt.engine.catalog.folders.locks import LOCK_FILE
from dbt.adapters.silt.engine.catalog.names.documents import View
from dbt.adapters.silt.engine.catalog.names.log_end import end_log
from dbt.adapters.silt.engine.kernel.clock import SystemClock
from dbt.adapters.silt.engine.kernel.errors import (
    NoSpaceError,
    RelationNotFoundError,
    SchemaNotFoundError,
    StorageError,
    TableDamagedError,
)
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing, PutResult
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, CommitInfo, Metadata, parse, serialize
from dbt.adapters.silt.engine.kernel.table.paths import commit_name
from tests.faulty_store import Fault, FaultKind, FaultyStore
from tests.fixed_clock import FixedClock
from tests.unit.engine.catalog.conftest import make_table, named

Create = Callable[..., DeltaLog]
ORDERS = named("orders")
APPEND = serialize([CommitInfo(operation="WRITE"), AddFile("part-1.parquet", {}, size=1, modification_time=1)])


class CutOff(BaseException):
    """Simulates the end of the process: the engine does not catch it."""


class CutOffStore(LocalStore):
    """Ends the process before or after its n-th change."""

    def __init__(self, root: str, at: list[int], after: bool) -> None:
        super().__init__(root)
        self.at, self.after = at, after

    def child(self, folder: str) -> CutOffStore:
        return CutOffStore(self.local_path(folder), self.at, self.after)

    def _step(self, change: Callable[[], object]) -> object:
        self.at[0] -= 1
        if self.at[0] == 0 and not self.after:
            raise CutOff
        result = change()
        if self.at[0] == 0:
            raise CutOff
        return result

    def put(self, path: str, data: bytes) -> None:
        self._step(lambda: LocalStore.put(self, path, data))

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        return self._step(lambda: LocalStore.put_if_absent(self, path, data))  # type: ignore[return-value]

    def rename_folder(self, source: str, target: str) -> None:
        self._step(lambda: LocalStore.rename_folder(self, source, target))

    def delete_folder(self, folder: str) -> None:
        self._step(lambda: LocalStore.delete_folder(self, folder))


def put_first(base: Snapshot) -> PutResult:
    """Writes version 1 to the log that the snapshot was read from, if it still exists."""
    assert base.log_folder is not None
    return base.log_folder.put_if_absent(commit_name(1), APPEND)


def test_the_commit_that_ends_a_log_has_an_in_commit_timestamp_after_the_commit_before_it(catalog: Catalog) -> None:
    log = make_table(catalog, ORDERS, with_in_commit_timestamps=True)
    end_log(log, FixedClock())
    before, after = (each.info.in_commit_timestamp for each in log.commits())
    assert before is not None and after == before + 1, "the clock of the drop is behind"


def test_a_dropped_table_and_its_files_are_gone(catalog: Catalog, create: Create, warehouse: Path) -> None:
    create(ORDERS)
    catalog.drop_table(ORDERS)
    assert sorted(os.listdir(warehouse / "main")) == [LOCK_FILE, "_schema.json"]
    with pytest.raises(RelationNotFoundError):
        catalog.drop_table(ORDERS)
    catalog.drop_table(ORDERS, if_exists=True)
    catalog.drop_table(named("x", "no_schema"), if_exists=True)


def test_a_writer_that_started_before_the_drop_cannot_commit(catalog: Catalog, create: Create) -> None:
    create(ORDERS)
    log = catalog.table(ORDERS)
    base = log.snapshot()
    catalog.drop_table(ORDERS)
    with pytest.raises(ObjectMissing):
        put_first(base)
    make_table(catalog, ORDERS, "second")
    with pytest.raises(ObjectMissing):
        put_first(base)
    assert catalog.table(ORDERS).snapshot().version == 0


def test_the_last_version_changes_the_metadata_so_that_every_writer_conflicts_with_it(
    create: Create, warehouse: Path
) -> None:
    log = create(ORDERS)
    base = log.snapshot()
    stopped = Catalog({"silt": CutOffStore(str(warehouse), [3], after=False)}, FixedClock())
    with pytest.raises(CutOff):
        stopped.drop_table(ORDERS)
    assert put_first(base) is PutResult.EXISTS
    last = parse(log.store.read("_delta_log/00000000000000000001.json"))
    assert [type(action) for action in last] == [CommitInfo, Metadata]
    assert isinstance(last[0], CommitInfo) and last[0].operation == "DROP TABLE"
    assert isinstance(last[1], Metadata) and last[1].id == base.metadata.id


def test_a_drop_commits_after_a_writer_that_was_faster(catalog: Catalog, create: Create) -> None:
    log = create(ORDERS)
    put_first(log.snapshot())
    catalog.drop_table(ORDERS)
    assert catalog.find(ORDERS) is None


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", range(1, 5))
def test_an_interrupted_drop_leaves_the_complete_table_or_no_table(
    catalog: Catalog, create: Create, warehouse: Path, at: int, after: bool
) -> None:
    create(ORDERS)
    stopped = Catalog({"silt": CutOffStore(str(warehouse), [at], after)}, FixedClock(seed=7))
    with pytest.raises(CutOff):
        stopped.drop_table(ORDERS)

    observer = Catalog({"silt": LocalStore(warehouse)}, SystemClock())
    there = observer.find(ORDERS) is not None
    assert there == (at < 2 or (at == 2 and not after))
    assert there == bool(observer.relations("silt", "main"))
    if there:
        assert observer.table(ORDERS).snapshot().num_files == 1
        observer.drop_table(ORDERS)
    else:
        with pytest.raises(RelationNotFoundError):
            observer.drop_table(ORDERS)
    make_table(observer, ORDERS, "second")
    assert catalog.table(ORDERS).snapshot().metadata.id == "second"
    observer.drop_table(ORDERS)
    assert sorted(os.listdir(warehouse / "main")) == [LOCK_FILE, "_schema.json"]


def test_a_view_may_get_the_name_of_a_table_whose_drop_was_interrupted(
    catalog: Catalog, create: Create, warehouse: Path
) -> None:
    create(ORDERS)
    with pytest.raises(CutOff):
        Catalog({"silt": CutOffStore(str(warehouse), [2], after=True)}).drop_table(ORDERS)
    catalog.put_view(View(ORDERS, "select 1"))
    assert [entry.kind.value for entry in catalog.relations("silt", "main")] == ["view"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda log: (log / "00000000000000000000.json").write_bytes(b'{"metaData": {"id"'),
        lambda log: (log / "00000000000000000000.json").rename(log / "00000000000000000007.json"),
        lambda log: (log / "00000000000000000000.json").write_bytes(b'{"protocol":{"minReaderVersion":9}}'),
    ],
)
def test_a_table_with_a_damaged_log_is_listed_and_can_be_dropped(
    catalog: Catalog, create: Create, warehouse: Path, damage: Callable[[Path], object]
) -> None:
    create(ORDERS)
    damage(warehouse / "main" / "orders" / "_delta_log")
    assert catalog.find(ORDERS) is not None
    with pytest.raises(TableDamagedError):
        catalog.table(ORDERS).snapshot()
    catalog.drop_table(ORDERS)
    assert sorted(os.listdir(warehouse / "main")) == [LOCK_FILE, "_schema.json"]


def test_an_interrupted_drop_of_a_damaged_table_leaves_the_complete_table_or_no_table(
    catalog: Catalog, create: Create, warehouse: Path
) -> None:
    create(ORDERS)
    (warehouse / "main" / "orders" / "_delta_log" / "00000000000000000000.json").write_bytes(b"{")
    with pytest.raises(CutOff):
        Catalog({"silt": CutOffStore(str(warehouse), [2], after=True)}).drop_table(ORDERS)
    assert catalog.find(ORDERS) is None


def test_later_damage_does_not_hide_a_table_whose_drop_was_interrupted_before_its_effect(
    catalog: Catalog, create: Create, warehouse: Path
) -> None:
    create(ORDERS)
    with pytest.raises(CutOff):
        Catalog({"silt": CutOffStore(str(warehouse), [1], after=True)}).drop_table(ORDERS)
    (warehouse / "main" / "orders" / "_delta_log" / "00000000000000000000.json").write_bytes(b"{")
    assert catalog.find(ORDERS) is not None


@pytest.mark.parametrize("written", [0, 1])
def test_a_table_can_be_dropped_on_a_full_disk(catalog: Catalog, create: Create, warehouse: Path, written: int) -> None:
    pinned = create(ORDERS).store.pin("_delta_log")
    full = FaultyStore(LocalStore(warehouse), [Fault("put*", FaultKind.FULL, skip=written)])
    Catalog({"silt": full}).drop_table(ORDERS)
    assert sorted(os.listdir(warehouse / "main")) == [LOCK_FILE, "_schema.json"]
    with pytest.raises(ObjectMissing):
        pinned.put_if_absent(commit_name(1), APPEND)
    assert catalog.find(ORDERS) is None


def test_on_a_full_disk_a_drop_of_an_expected_version_is_refused(
    catalog: Catalog, create: Create, warehouse: Path
) -> None:
    create(ORDERS)
    full = FaultyStore(LocalStore(warehouse), [Fault("put*", FaultKind.FULL)])
    with pytest.raises(NoSpaceError, match="No space left on device"):
        Catalog({"silt": full}).drop_table(ORDERS, version=0)
    assert catalog.table(ORDERS).snapshot().version == 0


def test_files_that_cannot_be_deleted_do_not_undo_the_drop(
    catalog: Catalog, create: Create, warehouse: Path, caplog: pytest.LogCaptureFixture
) -> None:
    create(ORDERS)

    class Stuck(LocalStore):
        def delete_folder(self, folder: str) -> None:
            raise StorageError("device busy")

    Catalog({"silt": Stuck(warehouse)}).drop_table(ORDERS)
    assert "device busy" in caplog.text
    assert catalog.find(ORDERS) is None
    create(named("other"))
    catalog.drop_table(named("other"))
    assert sorted(os.listdir(warehouse / "main")) == [LOCK_FILE, "_schema.json"]


class Waiting(SystemClock):
    """A clock that reports waits for another process's lock: each wait is a sleep."""

    def __init__(self) -> None:
        self.seen = threading.Event()

    def sleep(self, seconds: float) -> None:
        self.seen.set()
        super().sleep(seconds)

    def seen_of(self, thread: threading.Thread) -> bool:
        """Returns whether the thread comes to wait; False if it ends first."""
        while thread.is_alive() and not self.seen.wait(timeout=0.05):
            pass
        return self.seen.is_set() and thread.is_alive()


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Waiting:
    """Reports waits for the lock of another thread of this process, too."""
    clock = Waiting()

    class Watched(threading.Condition):
        def wait(self, timeout: float | None = None) -> bool:
            clock.seen.set()
            return super().wait(timeout)

    monkeypatch.setattr(locks, "_held_changed", Watched())
    return clock


@pytest.mark.parametrize("alias", ["warehouse", "alias"])
def test_a_table_created_while_another_is_dropped_is_not_deleted_by_the_drop(
    create: Create, warehouse: Path, tmp_path: Path, alias: str, waiting: Waiting
) -> None:
    """The alias makes the two share no memory, as in two processes."""
    create(ORDERS)
    (tmp_path / "alias").symlink_to(warehouse)
    root = warehouse if alias == "warehouse" else tmp_path / "alias"
    catalog = Catalog({"silt": LocalStore(root)}, waiting)
    creator = threading.Thread(target=lambda: make_table(catalog, ORDERS, "2"))

    class Slow(LocalStore):
        def rename_folder(self, source: str, target: str) -> None:
            creator.start()
            assert waiting.seen_of(creator), "the log has ended and its folder is still there: nobody may use the name"
            super().rename_folder(source, target)

    Catalog({"silt": Slow(warehouse)}).drop_table(ORDERS)
    creator.join(timeout=30)
    assert Catalog({"silt": LocalStore(root)}).table(ORDERS).snapshot().metadata.id == "2"


def test_a_table_created_while_its_schema_is_dropped_finds_no_schema(
    create: Create, warehouse: Path, waiting: Waiting
) -> None:
    create(ORDERS)
    raised: list[Exception] = []

    def make() -> None:
        try:
            Catalog({"silt": LocalStore(warehouse)}).new_table(named("other"))
        except Exception as error:
            raised.append(error)

    creator = threading.Thread(target=make)

    class Slow(LocalStore):
        def rename_folder(self, source: str, target: str) -> None:
            creator.start()
            assert waiting.seen_of(creator)
            super().rename_folder(source, target)

    Catalog({"silt": Slow(warehouse)}).drop_schema("silt", "main", cascade=True)
    creator.join(timeout=30)
    assert [type(error) for error in raised] == [SchemaNotFoundError]
    assert set(os.listdir(warehouse)) == {LOCK_FILE, ".gitignore"}


def test_a_drop_of_a_linked_folder_deletes_the_link_and_names_the_remaining_folder(
    create: Create, catalog: Catalog, warehouse: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    create(ORDERS)
    folder = warehouse / "main" / "orders"
    folder.rename(tmp_path / "moved")
    folder.symlink_to(tmp_path / "moved")
    catalog.drop_table(ORDERS)
    assert sorted(os.listdir(warehouse / "main")) == [LOCK_FILE, "_schema.json"]
    assert (tmp_path / "moved" / "_delta_log").is_dir()
    assert f"the link is deleted, and the files stay in {tmp_path / 'moved'}" in caplog.text
