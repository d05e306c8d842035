"""LocalStore: concurrent processes, links, refused writes and listings, descriptors."""

from __future__ import annotations

import errno
import gc
import io
import multiprocessing
import os
import socket
import tracemalloc
from collections.abc import Callable, Iterator
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from dbt.adapters.silt.engine.kernel.errors import (
    NoSpaceError,
    NotWrittenError,
    ReadOnlyStorageError,
    StorageError,
    SymbolicLinkError,
    UnusableFileError,
)
from dbt.adapters.silt.engine.kernel.storage import beneath, storage_errors
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing, PutResult
from tests.unprivileged import run_unprivileged

WRITERS = 4
FILES = 25


def put_all(root: str, writer: int, start: Barrier, won: Queue[tuple[int, int]]) -> None:
    store = LocalStore(root)
    for number in range(FILES):
        start.wait(timeout=30)
        if store.put_if_absent(f"log/{number}.json", b"%d" % writer) is PutResult.CREATED:
            won.put((number, writer))


def test_exactly_one_of_many_processes_creates_a_file(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    context = multiprocessing.get_context("spawn")
    start, won = context.Barrier(WRITERS), context.Queue()
    writers = [context.Process(target=put_all, args=(str(tmp_path), n, start, won)) for n in range(WRITERS)]
    for writer in writers:
        writer.start()
    winners = dict(won.get(timeout=60) for _ in range(FILES))
    for writer in writers:
        writer.join(timeout=60)
        assert writer.exitcode == 0
    assert won.empty()
    assert {number: int((tmp_path / f"log/{number}.json").read_bytes()) for number in range(FILES)} == winners
    assert sorted(os.listdir(tmp_path / "log")) == sorted(f"{number}.json" for number in range(FILES))


def test_a_relative_root_is_resolved_at_creation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = LocalStore("here")
    monkeypatch.chdir("/")
    store.make_folder("")
    assert (tmp_path / "here").is_dir()
    assert store.local_path("a b/%41") == f"{tmp_path}/here/a b/%41"


def test_rewriting_a_file_deletes_hadoops_checksum_of_it(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    (tmp_path / "._last_checkpoint.crc").write_bytes(b"of the old content")
    store.put("_last_checkpoint", b"new")
    assert os.listdir(tmp_path) == ["_last_checkpoint"]


def test_listings_omit_links_and_return_them_on_request(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"12")
    (tmp_path / "link").symlink_to("f")
    (tmp_path / "dead").symlink_to("nowhere")
    (tmp_path / "folder").symlink_to(tmp_path)
    store = LocalStore(tmp_path)
    assert [(status.name, status.size) for status in store.list_from("")] == [("f", 2)]
    assert store.list_folders("") == []
    assert store.list_links("") == ["dead", "folder", "link"]


@pytest.fixture
def linked(tmp_path: Path) -> LocalStore:
    """A store with a link to a file and a link to a folder, both outside of it."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "f").write_bytes(b"secret")
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "link").symlink_to(tmp_path / "outside" / "f")
    (tmp_path / "store" / "folder").symlink_to(tmp_path / "outside")
    return LocalStore(tmp_path / "store")


@pytest.mark.parametrize(
    "use",
    [
        lambda store: store.read("link"),
        lambda store: store.read("folder/f"),
        lambda store: store.open_input("link"),
        lambda store: store.open_input("folder/f"),
        lambda store: store.status("link"),
        lambda store: store.status("folder/f"),
        lambda store: store.status("folder/absent"),
        lambda store: list(store.statuses(["folder/f", "folder/f"])),
        lambda store: store.list_from("folder"),
        lambda store: store.list_folders("folder"),
        lambda store: store.list_links("folder"),
        lambda store: store.put("link", b"x"),
        lambda store: store.put("folder/f", b"x"),
        lambda store: store.put_if_absent("folder/new", b"x"),
        lambda store: store.delete("folder/f"),
        lambda store: store.delete_folder("folder/f"),
        lambda store: store.delete_empty_folder("folder/f"),
        lambda store: store.make_folder("folder/new"),
        lambda store: store.copy_in("folder/new", io.BytesIO(b"x")),
        lambda store: store.make_folder("folder"),
        lambda store: store.rename_folder("folder/f", "new"),
        lambda store: store.make_durable(["folder/f"]),
        lambda store: store.make_durable(["link"]),
        lambda store: store.folder_modified_ms("folder"),
        lambda store: store.pin("folder"),
    ],
)
def test_no_operation_follows_a_link(linked: LocalStore, tmp_path: Path, use: Callable[[LocalStore], object]) -> None:
    with pytest.raises(SymbolicLinkError, match="is a symbolic link"):
        use(linked)
    assert [(each.name, each.read_bytes()) for each in (tmp_path / "outside").iterdir()] == [("f", b"secret")]
    assert sorted(os.listdir(linked.root)) == ["folder", "link"]


@pytest.mark.parametrize(
    "use",
    [
        lambda store: store.read("../outside/f"),
        lambda store: store.read("a/../../outside/f"),
        lambda store: store.open_input("../outside/f"),
        lambda store: store.status("../outside/f"),
        lambda store: store.list_from("../outside"),
        lambda store: store.list_folders(".."),
        lambda store: store.list_links("../outside"),
        lambda store: store.put("../outside/f", b"x"),
        lambda store: store.put_if_absent("../outside/new", b"x"),
        lambda store: store.copy_in("../outside/new", io.BytesIO(b"x")),
        lambda store: store.delete("../outside/f"),
        lambda store: store.delete_all(["../outside/f"]),
        lambda store: store.delete_folder("../outside"),
        lambda store: store.delete_empty_folder("../outside/empty"),
        lambda store: store.make_folder("../outside/new"),
        lambda store: store.rename_folder("../outside", "new"),
        lambda store: store.rename_folder("folder", "../outside/new"),
        lambda store: store.make_durable(["../outside/f"]),
        lambda store: store.folder_modified_ms("../outside"),
        lambda store: store.pin("../outside"),
        lambda store: store.child("folder").read("../../outside/f"),
    ],
)
@pytest.mark.parametrize("allowed", [None, ()])
def test_no_operation_leaves_the_folder_by_two_dots(
    tmp_path: Path, use: Callable[[LocalStore], object], allowed: tuple[str, ...] | None
) -> None:
    for folder in ("outside/empty", "store/folder", "store/a"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "outside" / "f").write_bytes(b"secret")
    with pytest.raises(UnusableFileError, match="leads out of the folder"):
        use(LocalStore(tmp_path / "store", allowed))
    assert (tmp_path / "outside" / "f").read_bytes() == b"secret"
    assert sorted(os.listdir(tmp_path / "outside")) == ["empty", "f"]


def test_a_read_needs_memory_for_the_file_and_not_for_the_limit(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * 1000)
    store = LocalStore(tmp_path)
    tracemalloc.start()
    try:
        assert store.read("f", 1 << 30) == b"x" * 1000
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_folders_are_deleted_however_deep_they_are(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    for _ in range(3_000):
        os.mkdir("deep", dir_fd=descriptor)
        inner = os.open("deep", os.O_RDONLY, dir_fd=descriptor)
        os.close(os.open("file", os.O_CREAT, dir_fd=inner))
        os.close(descriptor)
        descriptor = inner
    os.close(descriptor)
    LocalStore(tmp_path).delete_folder("deep")
    assert os.listdir(tmp_path) == []


def test_a_folder_with_many_folders_files_and_links_is_deleted(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "f").write_bytes(b"kept")
    for number in range(20):
        (tmp_path / "tree" / f"k={number}" / "inner").mkdir(parents=True)
        (tmp_path / "tree" / f"k={number}" / "inner" / "f").touch()
        (tmp_path / "tree" / f"k={number}" / "link").symlink_to(tmp_path / "outside")
    LocalStore(tmp_path).delete_folder("tree")
    assert os.listdir(tmp_path) == ["outside"]
    assert (tmp_path / "outside" / "f").read_bytes() == b"kept"


@pytest.mark.parametrize("becomes_link", [True, False])
def test_a_folder_that_is_exchanged_during_its_deletion_leads_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, becomes_link: bool
) -> None:
    for folder in ("outside/a", "store/top/tree/a", "store/moved"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "outside" / "a" / "f").write_bytes(b"kept")
    top, scandir = tmp_path / "store" / "top", os.scandir

    def exchanged(descriptor: int) -> object:
        """Moves the folder above the tree away before the tree is listed, once."""
        if top.exists() and not top.is_symlink():
            top.rename(tmp_path / "store" / "moved" / "top")
            if becomes_link:
                top.symlink_to(tmp_path / "outside")
        return scandir(descriptor)

    monkeypatch.setattr(os, "scandir", exchanged)
    with pytest.raises(StorageError):
        LocalStore(tmp_path / "store").delete_folder("top/tree/a")
    assert (tmp_path / "outside" / "a" / "f").read_bytes() == b"kept"


def test_a_folder_that_is_moved_during_its_deletion_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "store" / "tree" / "a" / "b").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "b").mkdir()
    rmdir = os.rmdir

    def moved(name: str, *, dir_fd: int) -> None:
        rmdir(name, dir_fd=dir_fd)
        if name == "b":
            (tmp_path / "store" / "tree" / "a").rename(tmp_path / "outside" / "a")

    monkeypatch.setattr(os, "rmdir", moved)
    with pytest.raises(StorageError, match="a folder was moved while it was deleted"):
        LocalStore(tmp_path / "store").delete_folder("tree")
    assert (tmp_path / "outside" / "b").is_dir()


def test_a_link_itself_is_deleted_and_renamed(linked: LocalStore, tmp_path: Path) -> None:
    linked.delete("link")
    linked.rename_folder("folder", "renamed")
    linked.delete_folder("renamed")
    assert os.listdir(linked.root) == []
    assert (tmp_path / "outside" / "f").read_bytes() == b"secret"


@pytest.mark.parametrize("allowed", [None, ()])
def test_a_childs_folder_may_be_a_link_only_in_a_store_that_allows_all_paths(
    tmp_path: Path, allowed: tuple[str, ...] | None
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "f").write_bytes(b"x")
    (tmp_path / "main").symlink_to("elsewhere")
    child = LocalStore(tmp_path, allowed).child("main")
    if allowed is None:
        assert child.read("f") == b"x"
    else:
        with pytest.raises(SymbolicLinkError):
            child.read("f")


def test_the_root_folder_may_be_reached_through_links(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    store = LocalStore(tmp_path / "link", ())
    store.make_folder("a/b")
    store.put("a/b/f", b"x")
    assert store.child("a").read("b/f") == b"x"
    assert (tmp_path / "real" / "a" / "b" / "f").read_bytes() == b"x"


def test_a_forbidden_listing_is_a_failure_not_an_absence(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    too_long = "x" * 300
    for ask in (store.list_from, store.list_folders, store.read, store.status, store.pin):
        with pytest.raises(StorageError):
            ask(too_long)


def test_a_write_to_an_invalid_name_certainly_did_not_take_place(tmp_path: Path) -> None:
    with pytest.raises(NotWrittenError, match="too long"):
        LocalStore(tmp_path).put_if_absent("x" * 250, b"data")
    assert os.listdir(tmp_path) == []


def test_a_write_into_a_pinned_folder_that_is_being_deleted_reports_it_as_missing(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.make_folder("log")
    pinned = store.pin("log")
    os.rmdir(tmp_path / "log")
    with pytest.raises(ObjectMissing):
        pinned.put_if_absent("0.json", b"x")


def test_descriptors_are_closed(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.make_folder("log")
    gc.collect()
    before = open_descriptors()
    pins = [store.pin("log") for _ in range(20)]
    assert open_descriptors() == before + 20
    pins.clear()
    gc.collect()
    for number in range(20):
        store.put_if_absent(f"log/{number}", b"x")
    assert open_descriptors() == before


def open_descriptors() -> int:
    return len(os.listdir("/dev/fd"))


REFUSED = """
import errno, os
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
os.mkdir("house")
store, inner = LocalStore("house"), LocalStore("house/main/orders")
store.put("f", b"old")
os.chmod("house/f", 0)
os.chmod("house", 0o555)
asks = {
    "put": lambda: store.put("f", b"new"), "put_if_absent": lambda: store.put_if_absent("g", b"new"),
    "delete": lambda: store.delete("f"), "make_folder": lambda: store.make_folder("main"),
    "check_writable": store.check_writable, "check_writable below": inner.check_writable,
    "read": lambda: store.read("f"),
    "opened": lambda: Catalog({"silt": store}).open_schema("silt", "main"),
    "made": lambda: Catalog({"silt": LocalStore("house/new")}).open_schema("silt", "main"),
}
for name, ask in asks.items():
    try:
        ask()
        print(name, "done", sep="|")
    except SiltError as error:
        print(name, error.code, error.action, sep="|")
"""


def test_refused_and_failed_system_calls_raise_different_errors(tmp_path: Path) -> None:
    done = run_unprivileged(REFUSED, tmp_path)
    assert done.stderr == ""  # the error mentions no remaining file
    answers = [line.split("|") for line in done.stdout.splitlines()]
    told = {name: rest for name, *rest in answers}
    assert told.pop("read") == ["SILT_STORAGE", "Give the user of this process permission to read it"]
    assert told.pop("opened") == ["done"]
    assert set(told) == {
        "put",
        "put_if_absent",
        "delete",
        "make_folder",
        "check_writable",
        "check_writable below",
        "made",
    }
    assert {tuple(rest) for rest in told.values()} == {("SILT_READ_ONLY", ReadOnlyStorageError.remedy)}


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, NoSpaceError),
        (errno.EDQUOT, NoSpaceError),
        (errno.EROFS, ReadOnlyStorageError),
        (errno.EIO, StorageError),
    ],
)
def test_the_errno_of_a_failed_write_decides_its_error(number: int, kind: type[StorageError]) -> None:
    error = storage_errors.failure("writing f", OSError(number, os.strerror(number)), is_write=True)
    assert type(error) is kind and os.strerror(number) in str(error)


@pytest.mark.parametrize("make", [lambda path: path.mkdir(), lambda path: path.symlink_to("nowhere")])
def test_an_entry_that_is_not_a_file_is_never_mistaken_for_another_writers_file(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    make(tmp_path / "f")
    with pytest.raises(NotWrittenError, match="exists, but is not a file"):
        LocalStore(tmp_path).put_if_absent("f", b"x")


@pytest.mark.parametrize("error", [FileNotFoundError(errno.ENOENT, "gone"), OSError(errno.ENOTEMPTY, "not empty")])
def test_a_folder_in_which_other_processes_still_create_files_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    (tmp_path / "part").mkdir()
    delete_tree, errors = beneath.delete_tree, [error, error]

    def interrupted(above: int, name: str) -> None:
        if errors:
            (tmp_path / "part" / f"late-{len(errors)}").touch()
            raise errors.pop()
        delete_tree(above, name)

    monkeypatch.setattr(beneath, "delete_tree", interrupted)
    LocalStore(tmp_path).delete_folder("part")
    assert list(tmp_path.iterdir()) == []


def test_a_file_at_the_path_of_a_folder_is_not_deleted(tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(b"x")
    LocalStore(tmp_path).delete_folder("part")
    assert (tmp_path / "part").read_bytes() == b"x"


def test_a_folder_that_is_never_empty_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(above: int, name: str) -> None:
        raise OSError(errno.ENOTEMPTY, "not empty", name)

    (tmp_path / "part").mkdir()
    monkeypatch.setattr(beneath, "delete_tree", interrupted)
    with pytest.raises(StorageError, match="part"):
        LocalStore(tmp_path).delete_folder("part")


def test_a_folder_whose_files_vanish_at_each_attempt_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(above: int, name: str) -> None:
        raise FileNotFoundError(errno.ENOENT, "renamed", name)

    (tmp_path / "part").mkdir()
    monkeypatch.setattr(beneath, "delete_tree", interrupted)
    with pytest.raises(StorageError, match="part cannot be deleted"):
        LocalStore(tmp_path).delete_folder("part")


def test_deleting_a_link_to_a_folder_deletes_only_the_link(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "data")
    LocalStore(tmp_path).delete_folder("link")
    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "data" / "a").read_bytes() == b"x"


@pytest.fixture
def special_files(tmp_path: Path) -> Iterator[Path]:
    """A folder with a named pipe, a socket and a folder in it."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "socket"))
        yield tmp_path


@pytest.mark.parametrize("name", ["pipe", "socket", "folder"])
def test_an_entry_that_is_not_a_regular_file_is_refused_at_once(special_files: Path, name: str) -> None:
    store = LocalStore(special_files)
    for read in (store.read, store.open_input):
        with pytest.raises(UnusableFileError, match=f"{name} is not a regular file"):
            read(name)
    assert store.status(name) is None
    assert store.list_from("") == []


def test_a_file_larger_than_the_limit_of_its_kind_is_refused_unread(tmp_path: Path) -> None:
    with open(tmp_path / "sparse", "wb") as file:
        file.truncate(1 << 40)
    for limit in ((), (1 << 20,)):
        with pytest.raises(UnusableFileError, match="has 1099511627776 bytes, but a file of its kind has"):
            LocalStore(tmp_path).read("sparse", *limit)


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_a_name_that_no_file_system_supports_is_missing(tmp_path: Path, name: str) -> None:
    store = LocalStore(tmp_path)
    for read in (store.read, store.open_input):
        with pytest.raises(ObjectMissing):
            read(name)
    assert store.status(name) is None


def test_an_open_input_reads_the_file_that_was_opened_even_after_a_rename(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"first")
    with LocalStore(tmp_path).open_input("a") as source:
        os.rename(tmp_path / "a", tmp_path / "b")
        assert source.read() == b"first"
        assert source.seek(1) == 1
        assert source.read(2) == b"ir"
