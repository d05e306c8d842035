"""On a terminal dbt shows the progress of its statements, and erases it afterwards; in a pipe it shows nothing."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dbt.adapters.silt.command_server import control
from dbt.adapters.silt.command_server.client import SWITCH
from tests.files import write_files
from tests.terminals import Terminal, run_on_terminal

DBT = [str(Path(sys.executable).with_name("dbt"))]
SLEEPS = "select id, reflect('java.lang.Thread', 'sleep', 250L) as slept from range(0, {tasks}, 1, {tasks})"
PROJECT = {
    "dbt_project.yml": "{name: shop, version: '1.0', profile: shop, models: {+materialized: table}}",
    "profiles.yml": "shop: {target: dev, outputs: {dev: {type: silt, threads: 2, master: 'local[4]'}}}",
    "models/quick.sql": "{{ config(pre_hook='select 1') }} select 1 as id",
    "models/slow.sql": SLEEPS.format(tasks=40),
    "models/partitioned.sql": """
{{ config(partition_by='part', post_hook="insert into {{ this }} select * from {{ this }}") }}
select id, id % 60 as part from range(0, 60, 1, 1)""",
    "models/endless.sql": "{{ config(enabled=var('endless', false)) }} " + SLEEPS.format(tasks=4000),
}
OURS = re.compile(r" {4}\d:\d\d  \w+: ")
DBTS = re.compile(r"\d\d:\d\d:\d\d  ")
MOVES = re.compile(r"\x1b\[\d*[AJ]")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose tables are created by the first command of a test."""
    made = tmp_path_factory.mktemp("shop")
    write_files(made, PROJECT)
    return made


def environment(**more: str) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("DBT_")}
    return {**inherited, "TERM": "xterm", "DBT_SEND_ANONYMOUS_USAGE_STATS": "false", **more}


def on_terminal(folder: Path, *words: str) -> tuple[list[str], str]:
    """Runs a command; returns the screen after it, and its output."""
    terminal = Terminal(200, 30)
    code, written = run_on_terminal([*DBT, *words], folder, environment(), terminal)
    assert code == 0, written
    return terminal.lines, written


def test_a_run_shows_the_tasks_of_its_nodes_and_leaves_only_dbts_lines(folder: Path) -> None:
    screen, written = on_terminal(folder, "run")
    assert re.search(r" {4}0:0\d  slow: create, [1-9]\d* of 40 tasks, \d+ rows\r\n", written)
    assert not [line for line in screen if not DBTS.match(line)]
    assert [len([line for line in screen if word in line]) for word in (" START ", " OK created ")] == [3, 3]
    assert screen[-1].split("  ")[1] == "Done. PASS=3 WARN=0 ERROR=0 SKIP=0 NO-OP=0 TOTAL=3"


@pytest.mark.long
def test_in_a_pipe_neither_status_lines_nor_control_sequences_are_printed(folder: Path) -> None:
    run = subprocess.run(
        [*DBT, "--no-use-colors", "run", "--select", "slow"],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "\x1b" not in run.stdout + run.stderr
    assert "slow: create" not in run.stdout + run.stderr
    assert not [line for line in run.stdout.splitlines() if not DBTS.match(line)]


def test_a_run_ended_by_ctrl_c_leaves_no_status_line(folder: Path) -> None:
    interrupted: list[bool] = []

    def interrupt(process: subprocess.Popen[bytes], written: str) -> None:
        if "endless: create, " in written and not interrupted:
            interrupted.append(True)
            os.killpg(process.pid, signal.SIGINT)

    terminal = Terminal(200, 30)
    words = ["run", "--select", "endless", "--vars", "{endless: true}"]
    code, written = run_on_terminal([*DBT, *words], folder, environment(), terminal, interrupt)
    assert (code != 0, interrupted) == (True, [True])
    assert "Exited because of keyboard interrupt" in written
    assert not [line for line in terminal.lines if OURS.match(line)]


@pytest.mark.long
def test_an_operation_shows_its_progress_and_prints_its_result_below(folder: Path) -> None:
    on_terminal(folder, "run", "--select", "partitioned")
    screen, written = on_terminal(folder, "run-operation", "silt_optimize", "--args", "{table: main.partitioned}")
    assert re.search(r"silt_optimize: optimize, \d+ of 60 bins written", written)
    assert not [line for line in screen if OURS.match(line)]
    assert [line for line in screen if "numFilesAdded" in line or "metrics" in line]


@pytest.fixture
def servers_place(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The location of a separate command server, which is stopped after the test."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
    monkeypatch.delenv(SWITCH, raising=False)
    yield
    control.stop()


@pytest.mark.long
@pytest.mark.usefixtures("servers_place")
def test_a_command_of_the_command_server_shows_status_lines_on_its_users_terminal(folder: Path) -> None:
    terminal = Terminal(200, 30)
    words = [str(Path(sys.executable).with_name("silt")), "dbt", "run", "--select", "slow"]
    code, written = run_on_terminal(words, folder, environment(), terminal)
    assert code == 0, written
    assert len(control.status()) == 1
    assert re.search(r"slow: create, \d+ of 40 tasks", written)
    assert not [line for line in terminal.lines if OURS.match(line)]
