"""Another user of the machine cannot block this user's commands, or read or replace this user's files."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dbt.adapters.silt.command_server import sockets, starting
from dbt.adapters.silt.engine.catalog.folders.locks import LOCK_FILE
from dbt.adapters.silt.engine.kernel.errors import KeptSparkError
from dbt.adapters.silt.kept_spark import private_files
from dbt.adapters.silt.records.command_result import KeptResults
from dbt.adapters.silt.records.run_registry import REGISTRY_FILE, RunEntry, RunRegistry, variables_text
from dbt.adapters.silt.report import server as server_module
from dbt.adapters.silt.report.document import Document
from dbt.adapters.silt.report.server import LiveData, ReportServer
from tests.security.attacks import limited
from tests.unit.cli.house import House, rows

_NOBODY = 65534
NOT_OURS = r"belongs to another user|every user can change"
HOLDER = f"""
import fcntl, os, sys
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid({_NOBODY})
    os.setuid({_NOBODY})
held = []
for folder, _, files in os.walk("."):
    for path in [folder, *(os.path.join(folder, file) for file in files)]:
        try:
            held.append(os.open(path, os.O_RDONLY))
            fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except PermissionError:
            print("refused", os.path.basename(path), flush=True)
print("held", len(held), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def house(tmp_path: Path) -> House:
    """A warehouse that every user may read, in which names have been changed."""
    house = House(tmp_path / "house")
    house.folder.mkdir(mode=0o755)
    house.create("main.orders", rows(0, 3))
    for folder, _, _ in os.walk(house.folder):
        os.chmod(folder, 0o755)
    return house


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_a_user_with_read_permission_only_cannot_block_changes_of_names(house: House) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER], cwd=house.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        said = [holder.stdout.readline()]
        while not said[-1].startswith("held"):
            said.append(holder.stdout.readline())
        assert int(said[-1].split()[1]) > 3
        assert f"refused {LOCK_FILE}\n" in said
        with limited(10):
            house.create("main.more", rows(0, 1))
            house.catalog.rename(house.name("main.more"), house.name("main.renamed"))
            house.catalog.drop_table(house.name("main.renamed"))
            house.catalog.create_schema(house.database, "other")
        holder.kill()


@pytest.mark.parametrize(
    ("folder", "expected"), [(0o755, 0o600), (0o775, 0o660), (0o777, 0o666), (0o700, 0o600), (0o750, 0o600)]
)
def test_the_lock_file_can_be_opened_by_the_users_who_may_write_in_its_folder(
    folder: int, expected: int, house: House
) -> None:
    schema = house.folder / "main"
    (schema / LOCK_FILE).unlink(missing_ok=True)
    os.chmod(schema, folder)
    house.create("main.more", rows(0, 1))
    assert stat.S_IMODE((schema / LOCK_FILE).stat().st_mode) == expected


@pytest.mark.parametrize("which", ["", "dbt-silt"])
@pytest.mark.parametrize("how", ["of another user", "of every user"])
def test_a_cache_folder_that_other_users_can_change_is_refused(
    which: str, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    (cache / "dbt-silt").mkdir(parents=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    _give(cache / which, how)
    with pytest.raises(KeptSparkError, match=NOT_OURS):
        private_files.private_folder(private_files.base_folder())
    with pytest.raises(sockets.UnsafeFolderError, match=NOT_OURS):
        sockets.folder()


def _give(folder: Path, how: str) -> None:
    if how == "of every user":
        folder.chmod(0o777)
    elif os.geteuid() == 0:
        os.chown(folder, _NOBODY, _NOBODY)
    else:
        pytest.skip("only root can give a folder away")


def test_a_cache_folder_of_this_user_is_used_whatever_its_group_permissions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(0o775)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    assert sockets.folder() == str(cache / "dbt-silt" / "commands")
    assert private_files.private_folder(private_files.base_folder()) == cache / "dbt-silt" / "spark"


@pytest.mark.parametrize("ending", [sockets.LOCK, sockets.LOG])
def test_the_command_server_writes_no_file_through_a_link(ending: str, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("of somebody")
    (tmp_path / f"name{ending}").symlink_to(target)
    listener = socket.socket(socket.AF_UNIX)
    with listener, pytest.raises(OSError, match="symbolic"):
        if ending == sockets.LOCK:
            with sockets.locked(str(tmp_path), "name"):
                pytest.fail("locked a link")
        else:
            starting.start(listener, str(tmp_path), "name")
    assert target.read_text() == "of somebody"


def test_only_this_user_can_read_the_values_of_variables(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        variables = variables_text({"password": "S3CRET"})
        RunRegistry(tmp_path).enter(RunEntry("one", "run", "dbt run", "/shop", "2026-03-01T12:00:00+00:00", variables))
    finally:
        os.umask(before)
    file = tmp_path / REGISTRY_FILE
    assert "S3CRET" in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_only_this_user_can_list_the_runs_and_read_the_results_of_a_project(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        RunRegistry(tmp_path).enter(RunEntry("one", "run", "dbt run", "/shop", "2026-03-01T12:00:00+00:00", ""))
        KeptResults(tmp_path).keep("one", "run", [])
    finally:
        os.umask(before)
    for folder in ("silt_runs", "silt_results"):
        assert stat.S_IMODE((tmp_path / folder).stat().st_mode) == 0o700


@pytest.fixture
def server() -> Iterator[ReportServer]:
    live = LiveData(lambda moment: Document("{}", 0, 0, (), ()), time.monotonic, lambda: 0)
    with ReportServer(0, live) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def test_unfinished_requests_use_few_threads_and_time_out(
    server: ReportServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = threading.active_count()
    open_ = [socket.create_connection((server_module.HOST, server.server_port)) for _ in range(100)]
    with contextlib.suppress(OSError):
        for each in open_:
            each.sendall(b"GET / HTTP/1.1\r\nX: ")
    time.sleep(0.3)
    assert threading.active_count() - before <= 33
    monkeypatch.setattr(server_module, "_SECONDS", 0.0)
    with limited(10):
        while threading.active_count() > before:
            time.sleep(0.02)
    monkeypatch.undo()
    with socket.create_connection((server_module.HOST, server.server_port)) as fresh:
        fresh.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert b"403" in fresh.recv(100)
    for each in open_:
        each.close()
