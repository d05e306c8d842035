"""The file that a writer leaves in a local table's folder if it is killed during a write."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.maintenance import vacuum
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore, is_temporary_name
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER, parse_log_name
from tests.unit.engine.kernel.log_builder import log_of, paths

# The writer ends, as after SIGKILL, at the system call that completes its file.
WRITER = """
import os, sys
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore

root, method, call, name = sys.argv[1:]
setattr(os, call, lambda *_, **__: os._exit(9))
getattr(LocalStore(root), method)(name, b"{}")
"""
CALLS = [
    ("put_if_absent", "link", "00000000000000000003.json"),
    ("put_if_absent", "fsync", "00000000000000000003.json"),
    ("put_if_absent", "link", "00000000000000000002.crc"),
    ("put", "replace", "00000000000000000002.checkpoint.parquet"),
    ("put", "fsync", "_last_checkpoint"),
]


@pytest.mark.parametrize(("method", "call", "name"), CALLS)
def test_readers_ignore_the_file_of_a_killed_writer_and_vacuum_deletes_it(
    tmp_path: Path, method: str, call: str, name: str
) -> None:
    log = log_of(2, LocalStore(tmp_path))
    before = {file.name for file in log.store.list_from(LOG_FOLDER)}
    arguments = [str(tmp_path), method, call, f"{LOG_FOLDER}/{name}"]
    done = subprocess.run([sys.executable, "-c", WRITER, *arguments], timeout=60, check=False)
    assert done.returncode == 9
    (left,) = {file.name for file in log.store.list_from(LOG_FOLDER)} - before
    assert is_temporary_name(left) and parse_log_name(left) is None
    reader = DeltaLog(LocalStore(tmp_path), "t")
    assert (reader.snapshot().version, paths(reader)) == (2, {"f1", "f2"})
    assert removable(reader, age_ms=60_000) == set()
    old = time.time() - 3_600
    os.utime(tmp_path / LOG_FOLDER / left, (old, old))
    assert removable(reader, age_ms=60_000) == {f"{LOG_FOLDER}/{left}"}


def removable(log: DeltaLog, age_ms: int) -> set[str]:
    cutoff_ms = log.clock.now_ms() - age_ms
    snapshot = log.snapshot()
    found = vacuum.untracked(log.store, snapshot, vacuum.needed(log, snapshot, cutoff_ms), cutoff_ms)
    return {file.path for file in found.files}
