"""The contract of every store, tested on each kind."""

from __future__ import annotations

import ast
import io
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest

from dbt.adapters.silt.engine.kernel.errors import StorageError
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.storage.object_store import ObjectStore
from dbt.adapters.silt.engine.kernel.storage.store import (
    ObjectExists,
    ObjectMissing,
    PinnedFolder,
    PrefixStore,
    PutResult,
    Store,
    Tree,
)
from dbt.adapters.silt.engine.kernel.transaction.branched_store import BranchedStore
from tests.faulty_store import FaultyStore
from tests.memory_object_store import MemoryObjectStore
from tests.memory_store import MemoryStore

Get = Callable[[str], Any]
STORES: dict[str, Callable[[Path, Get], Store]] = {
    "local": lambda folder, _: LocalStore(folder / "a b%20ü😊"),
    "memory": lambda *_: MemoryStore().child("a b%20ü😊"),
    "faultless": lambda folder, _: FaultyStore(LocalStore(folder)),
    "faultless bucket": lambda *_: FaultyStore(MemoryObjectStore().child("b")),
    "s3": lambda _, get: get("s3").store(),
    "bucket in memory": lambda *_: MemoryObjectStore().child("a b%20ü😊"),
    "objects in memory": lambda *_: ObjectStore("memory:///").child("a b%20ü😊"),
    "objects in files": lambda folder, _: ObjectStore(f"file://{folder}"),
    "branch": lambda folder, _: BranchedStore(LocalStore(folder / "table"), LocalStore(folder / "branch"), 0),
    "branch of a bucket": lambda *_: BranchedStore(MemoryObjectStore().child("t"), MemoryObjectStore().child("b"), 0),
}
WITH_FOLDERS = ("local", "memory", "faultless", "branch")
OBJECTS = ("bucket in memory", "faultless bucket", "objects in memory", "objects in files")
PREFIXES_ONLY = ("s3", "branch of a bucket", *OBJECTS)
# Races for one key are decided by the storage itself; the S3 service here does not decide them (see tests/s3.py).
ATOMIC = (*WITH_FOLDERS, "branch of a bucket", *OBJECTS)


@pytest.fixture(params=sorted(STORES))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    made = STORES[request.param](tmp_path, request.getfixturevalue)
    made.make_folder("")
    return made


def of_kinds(*kinds: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("store", kinds, indirect=True)


def known(store: Store, folder: str) -> PinnedFolder:
    """Pins the folder like a log: identified by a file in it."""
    store.put(f"{folder}/0.json", b"first")
    status = store.status(f"{folder}/0.json")
    assert status is not None
    return store.pin(folder).known_by(status)


def test_a_written_file_is_read_back(store: Store) -> None:
    store.make_folder("_delta_log")
    assert store.put_if_absent("_delta_log/0 %é.json", b"one") is PutResult.CREATED
    assert store.read("_delta_log/0 %é.json") == b"one"
    with store.open_input("_delta_log/0 %é.json") as file:
        file.seek(1)
        assert file.read() == b"ne"
    status = store.status("_delta_log/0 %é.json")
    assert status is not None and (status.path, status.name, status.size) == ("_delta_log/0 %é.json", "0 %é.json", 3)


def test_a_second_conditional_write_changes_nothing(store: Store) -> None:
    assert store.put_if_absent("a", b"one") is PutResult.CREATED
    assert store.put_if_absent("a", b"two") is PutResult.EXISTS
    assert store.read("a") == b"one"


@of_kinds(*ATOMIC)
def test_exactly_one_of_many_threads_creates_a_file(store: Store) -> None:
    store.make_folder("log")
    folder = store.pin("log")
    with ThreadPoolExecutor(8) as pool:
        for name in map(str, range(20)):
            puts = [
                pool.submit(folder.put_if_absent, name, b"%d" % n)
                if n % 2
                else pool.submit(store.put_if_absent, f"log/{name}", b"%d" % n)
                for n in range(8)
            ]
            created = [n for n, put in enumerate(puts) if put.result() is PutResult.CREATED]
            assert len(created) == 1
            assert store.read(f"log/{name}") == b"%d" % created[0]
    assert len(store.list_from("log")) == 20


@of_kinds(*WITH_FOLDERS)
def test_no_write_creates_a_folder(store: Store) -> None:
    with pytest.raises(ObjectMissing):
        store.put_if_absent("no/such/file", b"x")
    with pytest.raises(ObjectMissing):
        store.put("no/such/file", b"x")
    assert store.list_folders("") == []


@of_kinds(*PREFIXES_ONLY)
def test_a_prefix_is_a_folder_while_a_file_is_below_it(store: Store) -> None:
    store.make_folder("a/b")
    with pytest.raises(ObjectMissing):
        store.list_from("a")
    store.put("a/b/c/f", b"x")
    store.put("aa", b"x")
    assert (store.list_from("a"), store.list_folders("a"), store.list_folders("")) == ([], ["b"], ["a"])
    assert [status.path for status in store.list_from("")] == ["aa"]
    store.delete("a/b/c/f")
    with pytest.raises(ObjectMissing):
        store.list_folders("a")
    assert not store.delete_empty_folder("a")
    assert store.folder_modified_ms("aa") is None


def test_a_plain_write_replaces_the_content(store: Store) -> None:
    store.put("a", b"one")
    store.put("a", b"two")
    assert store.read("a") == b"two"
    assert [status.name for status in store.list_from("")] == ["a"]


def test_a_missing_file_and_an_empty_file_are_distinguished(store: Store) -> None:
    assert (store.list_from(""), store.list_folders("")) == ([], [])
    assert store.status("absent") is None
    for ask in (store.list_from, store.list_folders, store.read, store.open_input):
        with pytest.raises(ObjectMissing):
            ask("absent")
    store.put("here", b"x")
    with pytest.raises(ObjectMissing):
        store.list_from("absent", "x")


@of_kinds(*WITH_FOLDERS)
def test_an_empty_folder_exists(store: Store) -> None:
    store.make_folder("empty")
    assert store.list_from("empty") == []
    assert store.list_folders("empty") == []
    assert store.status("empty") is None
    with pytest.raises(ObjectMissing):
        store.pin("absent")


def test_a_listing_starts_at_the_given_name_and_is_sorted(store: Store) -> None:
    store.make_folder("log/inner")
    store.put("log/inner/f", b"x")
    for name in ("b", "a", "d", "c", "é"):
        store.put(f"log/{name}", name.encode())
    assert [status.path for status in store.list_from("log", "b")] == ["log/b", "log/c", "log/d", "log/é"]
    assert [status.size for status in store.list_from("log", "d")] == [1, 2]
    assert store.list_folders("log") == ["inner"]


def test_deleting_a_missing_file_is_no_error(store: Store) -> None:
    store.delete("absent")
    store.delete_folder("absent")
    store.put("a", b"")
    store.delete("a")
    assert store.status("a") is None


def test_a_folder_is_deleted_with_its_contents(store: Store) -> None:
    store.make_folder("t/x/y")
    store.put("t/x/y/f", b"")
    store.make_folder("tt")
    store.put("tt/f", b"x")
    store.delete_folder("t")
    assert store.list_folders("") == ["tt"]


@of_kinds(*WITH_FOLDERS)
def test_delete_empty_folder_deletes_only_an_empty_folder(store: Store) -> None:
    store.make_folder("t/x")
    store.put("t/f", b"")
    assert not store.delete_empty_folder("t")
    assert not store.delete_empty_folder("absent")
    assert store.delete_empty_folder("t/x")
    assert store.list_folders("t") == []
    assert store.read("t/f") == b""


@of_kinds(*WITH_FOLDERS)
def test_a_folders_modification_time_changes_when_a_file_is_added(store: Store) -> None:
    store.make_folder("t")
    before = store.folder_modified_ms("t")
    store.put("t/f", b"")
    after, put = store.folder_modified_ms("t"), store.status("t/f")
    assert before is not None and after is not None and put is not None
    assert before <= after and put.modified_ms <= after
    assert store.folder_modified_ms("t/f") is None
    assert store.folder_modified_ms("absent") is None


def test_a_folder_is_renamed_only_to_an_unused_path(store: Store) -> None:
    for folder in ("a/log", "b"):
        store.make_folder(folder)
    store.put("a/log/f", b"1")
    store.put("a/log/g", b"2")
    store.put("b/f", b"3")
    with pytest.raises(ObjectExists):
        store.rename_folder("a", "b")
    with pytest.raises(ObjectMissing):
        store.rename_folder("absent", "d")
    store.rename_folder("a", "d")
    assert (store.read("d/log/f"), store.read("d/log/g")) == (b"1", b"2")
    assert store.list_folders("") == ["b", "d"]


@of_kinds(*WITH_FOLDERS)
def test_a_folder_is_renamed_only_into_an_existing_folder_and_not_onto_an_empty_folder(store: Store) -> None:
    for folder in ("a", "b"):
        store.make_folder(folder)
    with pytest.raises(ObjectExists):
        store.rename_folder("a", "b")
    with pytest.raises(ObjectMissing):
        store.rename_folder("a", "no/such")


def test_a_child_sees_the_same_files(store: Store) -> None:
    child = store.child("schema/table")
    child.make_folder("_delta_log")
    child.put("_delta_log/f", b"x")
    assert store.read("schema/table/_delta_log/f") == b"x"
    assert child.root == f"{store.root}/schema/table"


@of_kinds(*WITH_FOLDERS)
def test_making_a_missing_file_durable_is_an_error(store: Store) -> None:
    store.make_folder("a/b")
    store.put("a/b/f", b"x")
    store.make_durable(["a/b/f"])
    with pytest.raises(ObjectMissing):
        store.make_durable(["a/b/f", "a/b/g"])


def test_a_pinned_folder_that_was_moved_is_not_written(store: Store) -> None:
    store.make_folder("t/log")
    pinned = known(store, "t/log")
    assert pinned.is_current()
    store.rename_folder("t", "trash")
    assert not pinned.is_current()
    with pytest.raises(ObjectMissing):
        pinned.put_if_absent("1.json", b"x")
    assert [status.name for status in store.list_from("trash/log")] == ["0.json"]


def test_a_pinned_folder_is_distinguished_from_a_new_folder_at_its_path(store: Store) -> None:
    store.make_folder("t/log")
    pinned = known(store, "t/log")
    store.delete_folder("t")
    store.make_folder("t/log")
    store.put("t/log/0.json", b"other")
    assert not pinned.is_current()
    with pytest.raises(ObjectMissing):
        pinned.put_if_absent("1.json", b"x")
    assert [status.name for status in store.list_from("t/log")] == ["0.json"]
    assert store.pin("t/log").put_if_absent("1.json", b"x") is PutResult.CREATED


def test_a_file_is_written_into_a_pinned_folder_once(store: Store) -> None:
    store.make_folder("t/log")
    pinned = known(store, "t/log")
    assert pinned.put_if_absent("1.json", b"x") is PutResult.CREATED
    assert pinned.put_if_absent("1.json", b"y") is PutResult.EXISTS
    assert pinned.is_current()
    assert store.read("t/log/1.json") == b"x"


def test_a_listing_and_a_status_agree(store: Store) -> None:
    store.put("f", b"x")
    assert store.list_from("") == [store.status("f")]
    assert store.list_from("", "f") == [store.status("f")]


def test_every_range_of_a_file_can_be_read(store: Store) -> None:
    content = bytes(range(256)) * 2_000
    store.put("f", content)
    with store.open_input("f") as file:
        assert file.seek(0, 2) == len(content)
        assert file.read(5) == b""
        for start, length in ((0, 3), (511_999, 10), (70_000, 200_000), (5, 0)):
            file.seek(start)
            assert (file.read(length), file.tell()) == (
                content[start : start + length],
                min(start + length, len(content)),
            )
        file.seek(-4, 2)
        assert file.read() == content[-4:]


def test_ranges_of_a_file_are_read_up_to_its_end(store: Store) -> None:
    content = bytes(range(256)) * 10_000
    store.put("f", content)
    ranges = [(0, 1), (2_000_000, 2_000_010), (5, 5), (len(content) - 3, len(content)), (1, 300)]
    assert store.read_ranges("f", ranges) == [content[start:end] for start, end in ranges]
    behind = [(0, 2), (len(content) - 3, len(content) + 5), (len(content), len(content) + 1), (1 << 40, (1 << 40) + 4)]
    assert store.read_ranges("f", behind) == [content[start:end] for start, end in behind]
    with pytest.raises(ObjectMissing):
        store.read_ranges("none", [(0, 1)])


def test_a_file_is_fetched_with_its_status(store: Store) -> None:
    assert store.fetch("a/f") is None
    store.make_folder("a")
    store.put("a/f", b"x")
    assert store.fetch("a/f") == (store.status("a/f"), b"x")


def test_the_files_of_all_folders_below_a_folder_are_found(store: Store) -> None:
    child = store.child("t")
    assert child.files_below("w") == []
    for path in ("w/a", "w/x=1/b", "w/x=1/y é/c", "w2/d"):
        child.make_folder(path.rpartition("/")[0])
        child.put(path, b"x")
    assert {file.path: file for file in child.files_below("w")} == {
        path: child.status(path) for path in ("w/a", "w/x=1/b", "w/x=1/y é/c")
    }


def test_the_tree_of_folders_agrees_with_the_listing_of_each_folder(store: Store) -> None:
    child = store.child("t")
    child.make_folder("")
    for path in ("a", "x/b", "x/y é/c", "z/w/d", "z2/e"):
        child.make_folder(path.rpartition("/")[0])
        child.put(path, b"x")
    found = child.tree()
    for folder in ("", "x", "x/y é", "z", "z/w", "z2"):
        assert found.content(folder) == (child.list_from(folder), child.list_folders(folder))
    with pytest.raises(ObjectMissing):
        found.content("none")


def test_a_file_at_the_path_of_a_folder_is_not_a_folder(store: Store) -> None:
    store.put("f", b"x")
    with pytest.raises((ObjectMissing, StorageError)):
        store.list_from("f")


def test_files_are_iterated_in_the_order_of_their_names(store: Store) -> None:
    store.make_folder("log/inner")
    for name in ("b", "a", "é", "B"):
        store.put(f"log/{name}", b"x")
    files = list(store.files_in_order("log"))
    assert [file.name for file in files] == ["B", "a", "b", "é"]
    assert files == [store.status(file.path) for file in files]


def test_the_statuses_of_files_are_in_the_order_of_the_question(store: Store) -> None:
    for name in ("a", "b"):
        store.put(name, name.encode())
    assert list(store.statuses(["b", "none", "a"])) == [store.status("b"), None, store.status("a")]


def test_the_contents_of_files_are_in_the_order_of_the_question(store: Store) -> None:
    large = b"x" * (1 << 20)
    for path, data in (("log/a", b"1"), ("log/b", large), ("c", b"")):
        store.make_folder("log")
        store.put(path, data)
    assert list(store.read_all(["log/b", "log/a", "c", "log/a"])) == [large, b"1", b"", b"1"]
    contents = store.read_all(["log/a", "log/none"])
    assert next(contents) == b"1"
    with pytest.raises(ObjectMissing):
        next(contents)
    with pytest.raises(ObjectMissing):
        next(store.read_all(["none/a"]))


def test_the_rest_of_an_open_file_is_copied_in(store: Store) -> None:
    store.make_folder("data")
    file = io.BytesIO(b"header and rows")
    file.seek(7)
    store.copy_in("data/f", file)
    assert store.read("data/f") == b"and rows"


def test_files_are_deleted_together_and_the_missing_are_no_error(store: Store) -> None:
    store.make_folder("t")
    for name in ("a", "b", "c"):
        store.put(f"t/{name}", b"x")
    store.delete_all(["t/a", "t/none", "t/c"])
    store.delete_all([])
    assert [file.name for file in store.list_from("t")] == ["b"]


def test_a_folder_without_links_has_an_empty_list_of_links(store: Store) -> None:
    store.put("f", b"x")
    assert store.list_links("") == []


def test_a_store_that_can_be_written_passes_the_check_also_before_its_root_exists(store: Store) -> None:
    store.check_writable()
    store.child("new").check_writable()
    assert store.files_below("") == []


def test_a_file_is_opened_at_its_local_path_if_the_store_is_local(store: Store) -> None:
    store.put("f", b"x")
    path = store.local_path("f")
    assert path is None or path.startswith(store.root)
    if store.is_local:
        assert path is not None and Path(path).read_bytes() == b"x"


def test_a_child_has_the_properties_of_its_store(store: Store) -> None:
    child = store.child("t")
    for each in (store, child):
        assert isinstance(each.has_folders, bool) and each.files_at_once > 0 and not each.is_never_reused
        assert (each.allowed, each.elsewhere) == (None, None)
    assert (child.has_folders, child.is_local, child.service) == (store.has_folders, store.is_local, store.service)


# swaps: the basis of a warehouse's names in an object store

SWAPPED = ("s3", "bucket in memory", "objects in memory")


@pytest.fixture
def bucket(store: Store) -> PrefixStore:
    assert not store.has_folders
    return cast(PrefixStore, store)


@of_kinds(*SWAPPED)
def test_an_object_is_replaced_only_by_a_caller_that_has_read_its_current_content(bucket: PrefixStore) -> None:
    bucket.put("names", b"first")
    seen = bucket.read_if_changed("names", None)
    assert seen is not None and seen.data == b"first"
    tag = bucket.swap_if_unchanged("names", b"second", seen.tag)
    assert tag is not None
    assert bucket.swap_if_unchanged("names", b"of a late one", seen.tag) is None
    assert bucket.read("names") == b"second"
    assert bucket.swap_if_unchanged("names", b"third", tag) is not None


@of_kinds(*SWAPPED)
def test_an_unchanged_object_is_not_read_again(bucket: PrefixStore) -> None:
    bucket.put("names", b"first")
    seen = bucket.read_if_changed("names", None)
    assert seen is not None
    assert bucket.read_if_changed("names", seen.tag) is None
    bucket.put("names", b"second")
    again = bucket.read_if_changed("names", seen.tag)
    assert again is not None and (again.data, again.tag != seen.tag) == (b"second", True)


@of_kinds(*SWAPPED)
def test_a_missing_object_is_not_swapped(bucket: PrefixStore) -> None:
    with pytest.raises(ObjectMissing):
        bucket.read_if_changed("none", None)
    bucket.put("names", b"first")
    seen = bucket.read_if_changed("names", None)
    assert seen is not None
    bucket.delete("names")
    assert bucket.swap_if_unchanged("names", b"second", seen.tag) is None


@of_kinds("bucket in memory", "objects in memory")
def test_of_many_concurrent_swaps_one_succeeds(bucket: PrefixStore) -> None:
    bucket.put("names", b"first")
    seen = bucket.read_if_changed("names", None)
    assert seen is not None
    with ThreadPoolExecutor(8) as pool:
        tags = list(pool.map(lambda number: bucket.swap_if_unchanged("names", b"%d" % number, seen.tag), range(8)))
    assert sum(tag is not None for tag in tags) == 1


@of_kinds(*SWAPPED)
def test_an_object_is_copied_over_another(bucket: PrefixStore) -> None:
    bucket.put("a/f", b"one")
    bucket.put("b/f", b"two")
    bucket.copy_file("a/f", "b/f")
    assert (bucket.read("a/f"), bucket.read("b/f")) == (b"one", b"one")
    with pytest.raises(ObjectMissing):
        bucket.copy_file("none", "b/f")


@of_kinds(*SWAPPED)
def test_a_store_whose_root_is_never_reused_has_the_same_objects(bucket: PrefixStore) -> None:
    bucket.put("f", b"x")
    never_reused = bucket.never_reused()
    assert (never_reused.is_never_reused, never_reused.root, never_reused.read("f")) == (True, bucket.root, b"x")


def test_each_method_of_a_store_a_folder_and_a_tree_is_called_by_a_test_of_this_file() -> None:
    """Another method of the protocols fails here, until a test calls it on each kind of store."""
    tests = [each for each in ast.parse(Path(__file__).read_text()).body if isinstance(each, ast.FunctionDef)]
    used = {each.attr for test in tests for each in ast.walk(test) if isinstance(each, ast.Attribute)}
    protocols = (Store, PrefixStore, PinnedFolder, Tree)
    assert {name for protocol in protocols for name in vars(protocol) if not name.startswith("_")} <= used
