"""A folder's lock has one holder at a time, among threads and processes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dbt.adapters.silt.engine.catalog.folders.locks import LOCK_FILE, TIMEOUT_MS, exclusive
from dbt.adapters.silt.engine.kernel.clock import SystemClock
from dbt.adapters.silt.engine.kernel.errors import StorageError
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing
from tests.fixed_clock import FixedClock

HOLDER = """
import fcntl, os, sys
fcntl.flock(os.open(sys.argv[1], os.O_RDWR | os.O_CREAT), fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_threads_take_turns(tmp_path: Path) -> None:
    inside: list[int] = []
    most: list[int] = []

    def work() -> None:
        for _ in range(20):
            with exclusive(LocalStore(tmp_path), "", SystemClock()):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) == 80
    assert max(most) == 1


def test_waiting_too_long_for_another_process_is_an_error_and_the_death_of_that_process_frees_the_lock(
    tmp_path: Path,
) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / LOCK_FILE)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        clock = FixedClock(step_ms=TIMEOUT_MS // 4)
        with pytest.raises(StorageError, match="another process"), exclusive(LocalStore(tmp_path), "", clock):
            pytest.fail("held twice")
        holder.kill()
    with exclusive(LocalStore(tmp_path), "", SystemClock()):
        assert os.listdir(tmp_path) == [LOCK_FILE]


def test_a_missing_folder_cannot_be_locked(tmp_path: Path) -> None:
    with pytest.raises(ObjectMissing), exclusive(LocalStore(tmp_path), "gone", SystemClock()):
        pytest.fail("held nothing")


def test_a_lock_obtained_after_its_folder_was_replaced_is_a_lock_of_the_new_folder(tmp_path: Path) -> None:
    folder = tmp_path / "schema"
    folder.mkdir()
    first = threading.Event()
    order: list[str] = []

    def wait_for_it() -> None:
        first.wait()
        with exclusive(LocalStore(tmp_path / "."), "schema", SystemClock()):
            order.append("second")
            assert os.path.exists(folder / "new")

    waiting = threading.Thread(target=wait_for_it)
    waiting.start()
    with exclusive(LocalStore(tmp_path), "schema", SystemClock()):
        first.set()
        folder.rename(tmp_path / "away")
        folder.mkdir()
        (folder / "new").touch()
        order.append("first")
    waiting.join()
    assert order == ["first", "second"]
