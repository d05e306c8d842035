"""`silt history` reads the newest versions first, and no more than it shows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dbt.adapters.silt.cli.main import main
from dbt.adapters.silt.engine.kernel.log import history
from dbt.adapters.silt.engine.kernel.log.commit_file import read_info
from dbt.adapters.silt.engine.kernel.storage.store import FileStatus, Store
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo
from dbt.adapters.silt.records.run_history import log_history, newest_commits
from tests.unit.cli.house import House, rows

MANY = 2_500


def with_commits(folder: Path, count: int) -> House:
    """Creates a warehouse with a table of so many commits."""
    house = House(folder)
    folder.mkdir(exist_ok=True)
    house.create("main.t", rows(0, 3))
    log, now = folder / "main" / "t" / "_delta_log", int(time.time() * 1_000)
    for version in range(1, count):
        info = {"commitInfo": {"timestamp": now + 10 * version + 7 * version % 50, "operation": "WRITE"}}
        text = json.dumps(info) + "\n" + json.dumps({"txn": {"appId": "a", "version": version}})
        (log / f"{version:020d}.json").write_text(text)
    return house


def test_the_newest_commits_come_first_with_the_same_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    house = with_commits(tmp_path / "house", 60)
    log = house.catalog.table(house.name("main.t"))
    monkeypatch.setattr(history, "_WINDOW", 7)
    assert list(newest_commits(log)) == log_history(log)[::-1]


def test_a_limit_ends_the_reading(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    house, read = with_commits(tmp_path / "house", MANY), list[int]()

    def counted(store: Store, version: int, file: FileStatus, table: str) -> CommitInfo:
        read.append(version)
        return read_info(store, version, file, table)

    monkeypatch.setattr(history, "read_info", counted)
    for arguments in (["-n", "5"], ["-n", "5", "--json"]):
        assert main(["history", "main.t", *arguments, "--warehouse", str(house.folder)]) == 0
        assert f"{MANY - 5}" in capsys.readouterr().out
        assert min(read) > MANY - 1_100


def test_all_versions_are_shown_in_groups(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    house = with_commits(tmp_path / "house", MANY)
    assert main(["history", "main.t", "--warehouse", str(house.folder)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [int(line.split()[0]) for line in shown if line.split()[:1] and line.split()[0].isdigit()] == list(
        range(MANY)
    )[::-1]
    assert sum(line.startswith("silt.main.t") for line in shown) == 1


def test_a_closed_pipe_ends_the_command_before_it_reads_old_versions(tmp_path: Path) -> None:
    house = with_commits(tmp_path / "house", MANY)
    (house.folder / "main" / "t" / "_delta_log" / f"{3:020d}.json").write_text("damaged")
    command = [sys.executable, "-c", "import sys; from dbt.adapters.silt.cli.main import main; sys.exit(main())"]
    reader, writer = os.pipe()
    with subprocess.Popen(
        [*command, "history", "main.t", "--warehouse", str(house.folder)], stdout=writer, stderr=subprocess.PIPE
    ) as run:
        os.close(writer)
        assert b"silt.main.t" in os.read(reader, 1000)
        os.close(reader)
        said = run.stderr.read() if run.stderr else b""
        assert (run.wait(), said) == (0, b"")
