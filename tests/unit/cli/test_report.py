"""`silt report` and `silt serve` as commands: their output, their files, and the input that they refuse."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from dbt.adapters.silt.cli.main import main
from dbt.adapters.silt.engine.kernel.table.paths import commit_path
from tests.unit.cli.house import House, rows

Silt = Callable[..., str]


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "page.html"


def test_the_page_is_written_and_its_path_printed(house: House, silt: Silt, output: Path) -> None:
    house.running("a").create("main.orders", rows(0, 3))
    printed = silt("report", "--output", str(output))
    assert printed.startswith(f"{output}: 1 table, 1 run, ")
    assert "silt.main.orders" in output.read_text(encoding="utf-8")
    assert os.listdir(output.parent) == ["page.html"]


@pytest.mark.parametrize("project", [(), ("--target-path", "target")])
def test_the_page_is_written_into_the_current_folder_and_not_into_target(
    house: House, silt: Silt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, project: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    assert silt("report", *project).startswith(str(tmp_path / "silt_report.html"))
    assert sorted(tmp_path.iterdir()) == sorted([*before, tmp_path / "silt_report.html"])


def test_the_path_is_printed_as_json_on_request(house: House, silt: Silt, output: Path) -> None:
    house.create("main.orders", rows(0, 3))
    answer = json.loads(silt("report", "--json", "-o", str(output)))
    assert answer["file"] == str(output) and answer["bytes"] == output.stat().st_size
    assert (answer["tables"], answer["runs"], answer["problems"]) == (1, 0, [])


def test_a_damaged_table_is_in_the_page_and_sets_the_exit_code(house: House, silt: Silt, output: Path) -> None:
    house.create("main.orders", rows(0, 3)).store.put(commit_path(1), b"{")
    assert "1 table could not be read" in silt("report", "-o", str(output), code=1)
    assert "SILT_CORRUPT_LOG" in output.read_text(encoding="utf-8")


def test_a_page_that_cannot_be_written_leaves_the_old_page(
    house: House, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("old")
    for output in (tmp_path / "file" / "page.html", tmp_path):
        assert main(["report", "--warehouse", str(house.folder), "-o", str(output)]) == 2
        message = capsys.readouterr().err
        assert "SILT_NOT_WRITTEN" in message and "--output" in message
    assert main(["report", "--warehouse", str(house.folder), "-o", ""]) == 2
    assert (tmp_path / "file").read_text() == "old"


def test_a_negative_number_of_runs_is_refused(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--warehouse", str(house.folder), "--runs", "-1"]) == 2
    assert "SILT_INVALID_ARGUMENT" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["report", "serve"])
def test_a_missing_warehouse_is_refused(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--warehouse", str(tmp_path / "none")]) == 2
    assert "the folder" in capsys.readouterr().err


def test_a_served_page_shows_new_commits_and_the_server_ends_with_ctrl_c(house: House) -> None:
    house.create("main.orders", rows(0, 3))
    command = [sys.executable, "-m", "dbt.adapters.silt.cli", "serve", "--json", "--warehouse", str(house.folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            url = json.loads("".join(iter(server.stdout.readline, "}\n")) + "}")["url"]
            with urllib.request.urlopen(f"{url}data.json", timeout=30) as answer:
                assert [table["n"] for table in json.load(answer)["tables"]] == ["silt.main.orders"]
        finally:
            server.send_signal(signal.SIGINT)
        assert server.wait(timeout=30) == 130
