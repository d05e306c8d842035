"""A new process deletes the folders that a killed process has left in the temporary folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from dbt.adapters.silt.session import local_spark

HOLDS = "from dbt.adapters.silt.session import local_spark; print(local_spark.make(), flush=True); input()"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_the_folder_of_a_killed_process_is_deleted_and_that_of_a_running_process_is_kept(folder: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(folder)}
    running = subprocess.Popen(
        [sys.executable, "-c", HOLDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    assert running.stdout is not None
    theirs = Path(running.stdout.readline().strip())
    own = Path(local_spark.make())
    assert theirs.is_dir()
    running.send_signal(signal.SIGKILL)
    running.communicate()
    assert theirs.is_dir()
    local_spark.make()
    assert (theirs.exists(), own.is_dir()) == (False, True)


def test_a_folder_whose_process_may_be_about_to_lock_it_is_kept_for_a_day(folder: Path) -> None:
    young, old = folder / "silt-spark-young", folder / "silt-spark-old"
    for each in (young, old):
        each.mkdir()
    os.utime(old, (0, 0))
    local_spark.make()
    assert (young.exists(), old.exists()) == (True, False)


def test_only_such_folders_are_deleted(folder: Path) -> None:
    (folder / "silt-spark-file").write_text("")
    (folder / "mine").mkdir()
    (folder / "silt-spark-link").symlink_to(folder / "mine")
    for each in ("mine", "silt-spark-file"):
        os.utime(folder / each, (0, 0))
    local_spark.make()
    assert (folder / "mine").is_dir() and (folder / "silt-spark-file").exists()


def test_a_folder_that_another_process_has_just_deleted_is_ignored(folder: Path) -> None:
    assert not local_spark._is_left(folder / "silt-spark-gone")
