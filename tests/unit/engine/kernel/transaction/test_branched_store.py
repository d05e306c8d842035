"""The store of a table on a branch shows the branch's log, and never changes the table's log, by any method."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.storage.store import FileStatus, PutResult, Store
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER, commit_path
from dbt.adapters.silt.engine.kernel.transaction.branched_store import BranchedStore
from tests.memory_object_store import MemoryObjectStore

BASE: Final = 1
DATA: Final = "part/a.parquet"
SIDECAR: Final = f"{LOG_FOLDER}/_sidecars/a.parquet"
COMMITS: Final = [commit_path(version) for version in range(4)]
CONTENTS: Final = {
    DATA: b"rows",
    SIDECAR: b"files",
    **{commit_path(version): b"table" for version in (0, 1)},
    **{commit_path(version): b"branch" for version in (2, 3)},
}
"""The files that the branch shows: version 2 is another commit in the table."""

OF_TABLE: Final = {
    DATA: b"rows",
    SIDECAR: b"files",
    **{commit_path(version): b"table" for version in (0, 1, 2)},
}

KINDS: Final[dict[str, Callable[[Path], Store]]] = {
    "local": lambda folder: LocalStore(folder / "warehouse"),
    "bucket": lambda _: MemoryObjectStore().child("warehouse"),
}


@pytest.fixture(params=sorted(KINDS))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> BranchedStore:
    root = KINDS[request.param](tmp_path)
    table, branch = root.child("t"), root.child("b")
    for folder in ("part", f"{LOG_FOLDER}/_sidecars"):
        table.make_folder(folder)
    branch.make_folder("")
    for path, data in OF_TABLE.items():
        table.put(path, data)
    for version in (2, 3):
        branch.put(commit_path(version).removeprefix(f"{LOG_FOLDER}/"), b"branch")
    return BranchedStore(table, branch, BASE)


def _paths(files: Any) -> list[str]:
    return sorted(each.path for each in files)


def _opened(store: BranchedStore, path: str) -> bytes:
    with store.open_input(path) as file:
        return file.read()


def _fetched(store: BranchedStore, path: str) -> bytes:
    found = store.fetch(path)
    assert found is not None and found[0].path == path
    return found[1]


def _at_local_path(store: BranchedStore, path: str) -> bytes:
    local = store.local_path(path)
    return store.read(path) if local is None or not store.is_local else Path(local).read_bytes()


READERS: Final[dict[str, Callable[[BranchedStore, str], bytes]]] = {
    "read": lambda store, path: store.read(path),
    "read_all": lambda store, path: next(iter(store.read_all([path]))),
    "read_ranges": lambda store, path: store.read_ranges(path, [(0, 100)])[0],
    "open_input": _opened,
    "fetch": _fetched,
    "local_path": _at_local_path,
}


@pytest.mark.parametrize("method", sorted(READERS))
def test_each_way_to_read_a_file_reads_the_commits_of_the_branch(store: BranchedStore, method: str) -> None:
    assert {path: READERS[method](store, path) for path in CONTENTS} == CONTENTS


LISTINGS: Final[dict[str, Callable[[BranchedStore], tuple[list[str], list[str]]]]] = {
    "list_from": lambda store: (_paths(store.list_from(LOG_FOLDER, "00000000000000000001")), COMMITS[1:]),
    "files_in_order": lambda store: ([each.path for each in store.files_in_order(LOG_FOLDER)], COMMITS),
    "files_below": lambda store: (_paths(store.files_below("")), sorted(CONTENTS)),
    "tree": lambda store: (_paths(store.tree().content(LOG_FOLDER)[0]), COMMITS),
    "list_folders": lambda store: (store.list_folders(LOG_FOLDER), ["_sidecars"]),
    "list_links": lambda store: (store.list_links(LOG_FOLDER), []),
}


@pytest.mark.parametrize("method", sorted(LISTINGS))
def test_each_listing_has_the_commits_of_the_branch(store: BranchedStore, method: str) -> None:
    found, expected = LISTINGS[method](store)
    assert found == expected


def test_files_below_the_log_are_the_commits_of_the_branch_and_the_tables_sidecars(store: BranchedStore) -> None:
    assert _paths(store.files_below(LOG_FOLDER)) == sorted([*COMMITS, SIDECAR])
    assert _paths(store.files_below("part")) == [DATA]


def _sizes(found: list[FileStatus | None]) -> list[tuple[str, int] | None]:
    return [None if each is None else (each.path, each.size) for each in found]


def test_each_status_is_the_status_of_the_commit_of_the_branch(store: BranchedStore) -> None:
    paths = [*reversed(CONTENTS), commit_path(4), "part/missing.parquet"]
    expected = [(path, len(CONTENTS[path])) if path in CONTENTS else None for path in paths]
    assert _sizes([store.status(path) for path in paths]) == expected
    assert _sizes(list(store.statuses(paths))) == expected


WRITES: Final[dict[str, Callable[[BranchedStore], object]]] = {
    "put": lambda store: store.put(commit_path(2), b"x"),
    "put_if_absent": lambda store: store.put_if_absent(commit_path(4), b"x"),
    "copy_in": lambda store: store.copy_in(commit_path(4), io.BytesIO(b"x")),
    "delete": lambda store: store.delete(commit_path(2)),
    "delete_all": lambda store: store.delete_all([commit_path(2), commit_path(3)]),
    "make_durable": lambda store: store.make_durable([DATA, commit_path(2), commit_path(3)]),
    "pin": lambda store: store.pin(LOG_FOLDER).put_if_absent("00000000000000000004.json", b"x"),
}


@pytest.mark.parametrize("method", sorted(WRITES))
def test_no_write_changes_the_log_of_the_table(store: BranchedStore, method: str) -> None:
    WRITES[method](store)
    assert {each.path: store.table.read(each.path) for each in store.table.files_below("")} == OF_TABLE


def test_files_that_are_deleted_together_are_gone_from_the_branch_and_from_the_data(store: BranchedStore) -> None:
    store.delete_all([commit_path(3), DATA])
    assert _paths(store.files_below("")) == sorted(set(CONTENTS) - {commit_path(3), DATA})


def test_a_commit_of_the_branch_exists_for_a_conditional_write_although_the_table_lacks_it(
    store: BranchedStore,
) -> None:
    assert store.put_if_absent(commit_path(3), b"x") is PutResult.EXISTS
    assert store.put_if_absent(commit_path(4), b"x") is PutResult.CREATED


FOLDERS: Final[dict[str, Callable[[BranchedStore, str], object]]] = {
    "delete_folder": lambda store, folder: store.delete_folder(folder),
    "delete_empty_folder": lambda store, folder: store.delete_empty_folder(folder),
    "rename_folder": lambda store, folder: store.rename_folder(folder, "elsewhere"),
}


@pytest.mark.parametrize("folder", ["", LOG_FOLDER])
@pytest.mark.parametrize("method", sorted(FOLDERS))
def test_the_folder_with_the_tables_log_is_neither_moved_nor_deleted(
    store: BranchedStore, method: str, folder: str
) -> None:
    with pytest.raises(AssertionError, match="a branch cannot move or delete"):
        FOLDERS[method](store, folder)
    assert _paths(store.table.files_below("")) == sorted(OF_TABLE)


OF_THE_TABLE: Final = {
    *("root", "has_folders", "is_local", "is_never_reused", "service", "allowed", "elsewhere", "files_at_once"),
    *("make_folder", "folder_modified_ms", "check_writable", "child"),
}
"""Operations that a branch leaves to the table's store, because they name no file of the log."""


def test_each_operation_of_a_store_is_tried_on_a_branch() -> None:
    operations = {name for name in vars(Store) if not name.startswith("_")}
    tried = {*READERS, *LISTINGS, *WRITES, *FOLDERS, "status", "statuses"}
    assert operations == tried | OF_THE_TABLE
    assert not tried & OF_THE_TABLE
