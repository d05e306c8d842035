"""ObjectStore: a service's answers, settings, and folders that are only prefixes."""

from __future__ import annotations

import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError, NotWrittenError, StorageError
from dbt.adapters.silt.engine.kernel.storage import object_store
from dbt.adapters.silt.engine.kernel.storage.object_store import ObjectStore
from dbt.adapters.silt.engine.kernel.storage.prefix_folders import PrefixFolder
from dbt.adapters.silt.engine.kernel.storage.store import FileStatus, ObjectMissing, PutResult
from tests.s3 import S3


def test_the_root_is_the_url_and_a_childs_root_is_below_it(s3: S3) -> None:
    store = s3.store("a/b/")
    assert (store.root, store.child("c d").root) == (f"{s3.base}/a/b", f"{s3.base}/a/b/c d")
    assert store.child("c d").local_path("x") == f"{s3.base}/a/b/c d/x"
    assert repr(store) == f"ObjectStore('{s3.base}/a/b')"


def test_two_handles_of_one_location_see_the_same_objects(s3: S3) -> None:
    first, second = s3.store("shared"), s3.store("shared")
    assert first.put_if_absent("f", b"1") is PutResult.CREATED
    assert second.put_if_absent("f", b"2") is PutResult.EXISTS
    assert second.read("f") == b"1"


def test_a_listing_continues_over_many_pages(s3: S3) -> None:
    store = s3.store().child("many")
    for number in range(1_003):
        store.put(f"log/{number:04d}", b"")
    assert [status.name for status in store.list_from("log")] == [f"{number:04d}" for number in range(1_003)]
    assert [status.name for status in store.list_from("log", "1000")] == ["1000", "1001", "1002"]
    store.delete_folder("log")
    with pytest.raises(ObjectMissing):
        store.list_from("log")


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("s3://bucket", {"no_such_option": "x"}),
        ("s3://bucket", {"max_retries": "many"}),
        ("nowhere://bucket", {}),
        ("s3:", {}),
    ],
)
def test_an_invalid_setting_is_refused_at_once(url: str, options: Mapping[str, str]) -> None:
    with pytest.raises(InvalidSettingError):
        ObjectStore(url, options)


def test_without_obstore_the_module_loads_and_the_error_names_the_package_to_install() -> None:
    code = (
        "import sys; sys.modules['obstore'] = None\n"
        "from dbt.adapters.silt.engine.kernel.storage.object_store import ObjectStore\n"
        "ObjectStore('s3://bucket')"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert "InvalidSettingError" in run.stderr and 'pip install "dbt-silt[s3]"' in run.stderr


def test_a_write_to_an_invalid_path_certainly_did_not_take_place(s3: S3) -> None:
    with pytest.raises(NotWrittenError):
        s3.store().put_if_absent("a/../../b", b"x")


@contextmanager
def answering(status: int, **other: int) -> Iterator[tuple[ObjectStore, list[str]]]:
    """Returns a store whose service gives every request that answer, or the answer for its method, and the received
    methods.
    """
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self) -> None:
            asked.append(self.command)
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(other.get(self.command, status))
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = answer

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield ObjectStore("s3://bucket/t", S3(f"http://127.0.0.1:{server.server_port}").options), asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize("status", [401, 403])
def test_a_forbidden_write_certainly_did_not_take_place(status: int) -> None:
    with answering(status) as (store, asked):
        with pytest.raises(NotWrittenError, match="s3://bucket/t/f was refused"):
            store.put_if_absent("f", b"x")
        for ask in (store.read, store.status, store.list_from, store.open_input):
            with pytest.raises(StorageError) as caught:
                ask("f")
            assert not isinstance(caught.value, NotWrittenError)
    assert asked[0] == "PUT"


@pytest.mark.parametrize("status", [409, 429, 500, 503])
def test_the_outcome_of_a_write_that_the_service_failed_is_unknown_and_it_is_sent_once(status: int) -> None:
    with answering(status) as (store, asked):
        with pytest.raises(StorageError) as caught:
            store.put_if_absent("f", b"x")
        assert not isinstance(caught.value, NotWrittenError)
        assert asked.count("PUT") == 1


def test_a_refusal_because_of_a_concurrent_write_does_not_mean_that_the_object_exists() -> None:
    with answering(409, HEAD=404) as (store, _), pytest.raises(StorageError, match="in progress"):
        store.put_if_absent("f", b"x")


def test_the_outcome_of_a_write_to_an_unreachable_service_is_unknown() -> None:
    with answering(200) as (store, _):
        pass
    with pytest.raises(StorageError) as caught:
        store.put_if_absent("f", b"x")
    assert not isinstance(caught.value, NotWrittenError)


def test_a_failing_service_is_not_a_missing_file() -> None:
    with answering(500) as (store, _):
        for ask in (store.read, store.status, store.list_from, store.list_folders):
            with pytest.raises(StorageError):
                ask("f")


def test_a_file_replaced_during_its_read_is_not_mixed_with_the_new_file(s3: S3) -> None:
    store = s3.store()
    store.put("f", b"a" * 200_000)
    with store.open_input("f") as file:
        assert file.read(10) == b"a" * 10
        store.put("f", b"b" * 200_000)
        file.seek(100_000)
        with pytest.raises(StorageError):
            file.read()


class Remaking(ObjectStore):
    """Drops the log, or drops and re-creates it, just before an object is written."""

    again = False

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        self.delete_folder("log")
        if self.again:
            self.put("log/0.json", b"another table")
        return super().put_if_absent(path, data)


@pytest.mark.parametrize("again", [False, True])
def test_a_write_overtaken_by_a_drop_is_removed(again: bool) -> None:
    store = Remaking("memory:///")
    store.again = again
    store.put("log/0.json", b"a table")
    status = store.status("log/0.json")
    assert status is not None
    with pytest.raises(ObjectMissing):
        store.pin("log").known_by(status).put_if_absent("1.json", b"late")
    assert store.status("log/1.json") is None


class Succeeded(ObjectStore):
    """Drops the log and creates another table's just after an object is written."""

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        result = super().put_if_absent(path, data)
        self.delete_folder("log")
        self.put("log/0.json", b"another table")
        self.put(path, b"a commit of the other table")
        return result


def test_removing_a_late_write_keeps_the_new_tables_commit() -> None:
    store = Succeeded("memory:///")
    store.put("log/0.json", b"a table")
    status = store.status("log/0.json")
    assert status is not None
    with pytest.raises(ObjectMissing):
        store.pin("log").known_by(status).put_if_absent("1.json", b"late")
    assert store.read("log/1.json") == b"a commit of the other table"


def test_a_folder_without_an_identifying_file_accepts_any_write() -> None:
    store = ObjectStore("memory:///")
    folder = store.pin("log")
    assert folder.is_current()
    assert folder.put_if_absent("0.json", b"x") is PutResult.CREATED


def test_a_folder_is_identified_by_content_not_by_time() -> None:
    store = ObjectStore("memory:///")
    store.put("log/0.json", b"x")
    seen = store.status("log/0.json")
    assert seen is not None and seen.etag is not None
    moved = FileStatus(seen.path, seen.size, seen.modified_ms - 5_000, seen.etag)
    assert PrefixFolder(store, "log", moved).is_current()
    assert not PrefixFolder(store, "log", FileStatus(seen.path, seen.size, seen.modified_ms, "other")).is_current()
    assert PrefixFolder(store, "log", seen).known_by(seen).witness is seen


def test_a_log_that_is_being_moved_lacks_its_first_version_until_the_move_is_complete(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = ObjectStore("memory:///")
    for name in ("_delta_log/0.json", "_delta_log/1.json", "a.parquet"):
        store.put(f"t/{name}", b"x")
    copy, copied = object_store.obstore.copy, []  # type: ignore[attr-defined]

    def watched(client: Any, source: str, target: str) -> None:
        copy(client, source, target)
        copied.append(target)

    monkeypatch.setattr(object_store.obstore, "copy", watched)  # type: ignore[attr-defined]
    store.rename_folder("t", "u")
    assert copied == ["u/a.parquet", "u/_delta_log/1.json", "u/_delta_log/0.json"]
    with pytest.raises(ObjectMissing):
        store.list_from("t")


def test_objects_written_during_the_deletion_of_a_folder_are_deleted_too(monkeypatch: pytest.MonkeyPatch) -> None:
    store = ObjectStore("memory:///")
    store.put("t/a", b"x")
    delete, late = object_store.obstore.delete, iter(["t/b", "t/c"])  # type: ignore[attr-defined]

    def interrupted(client: Any, keys: Any) -> None:
        delete(client, keys)
        for name in list(late)[:1]:
            store.put(name, b"late")

    monkeypatch.setattr(object_store.obstore, "delete", interrupted)  # type: ignore[attr-defined]
    store.delete_folder("t")
    assert store.list_folders("") == []
