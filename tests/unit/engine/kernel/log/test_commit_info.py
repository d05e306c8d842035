"""A commit's commitInfo is read without its other actions, and never more of it than any writer writes."""

from __future__ import annotations

import json
from io import BytesIO
from typing import IO

import pytest

from dbt.adapters.silt.engine.kernel.errors import CorruptLogError
from dbt.adapters.silt.engine.kernel.log import commit_file
from dbt.adapters.silt.engine.kernel.log.commit_file import read_info
from tests.memory_store import MemoryStore

PATH = "_delta_log/00000000000000000001.json"
LIMIT = 1 << 20


class CountingStore(MemoryStore):
    """Counts the bytes that are read from open files."""

    taken = 0

    def open_input(self, path: str) -> IO[bytes]:
        store = self

        class Counting(BytesIO):
            def read(self, size: int | None = -1) -> bytes:
                piece = super().read(size)
                store.taken += len(piece)
                return piece

        return Counting(super().open_input(path).read())


@pytest.fixture(autouse=True)
def limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_file, "LONGEST", LIMIT)


def stored(*actions: dict[str, object]) -> CountingStore:
    store = CountingStore()
    store.make_folder("_delta_log")
    store.put(PATH, "".join(f"{json.dumps(action)}\n" for action in actions).encode())
    return store


def operation(store: CountingStore) -> str | None:
    (file,) = store.list_from("_delta_log", "")
    return read_info(store, 1, file, "main.t").operation


def info(characters: int = 0) -> dict[str, object]:
    return {"commitInfo": {"operation": "MERGE", "text": "x" * characters}}


def add(characters: int) -> dict[str, object]:
    return {
        "add": {"path": "x" * characters, "size": 1, "modificationTime": 0, "partitionValues": {}, "dataChange": True}
    }


def test_only_the_first_line_of_a_long_commit_is_read() -> None:
    store = stored(info(), *[add(1000)] * 20_000)
    assert operation(store) == "MERGE"
    assert store.taken < 1 << 20


def test_an_overlong_line_is_refused_before_its_rest_is_read() -> None:
    store = stored(info(40 * LIMIT))
    with pytest.raises(CorruptLogError, match=r"main\.t@v1: .*its commitInfo has more than 1048576 bytes"):
        operation(store)
    assert store.taken < 4 * LIMIT


def test_an_overlong_line_is_refused_at_any_position() -> None:
    with pytest.raises(CorruptLogError, match="its commitInfo has more than 1048576 bytes"):
        operation(stored(add(1), info(2 * LIMIT)))


def test_another_action_may_be_longer() -> None:
    assert operation(stored(add(2 * LIMIT), info())) == "MERGE"
