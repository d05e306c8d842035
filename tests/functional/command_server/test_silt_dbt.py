"""`silt dbt` with the real dbt: each command behaves like `dbt`, and leaves nothing that the next command can see."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dbt.adapters.silt.command_server import control, request
from dbt.adapters.silt.command_server.client import SWITCH

_PROJECT = {
    "dbt_project.yml": "{name: shop, version: '1.0', profile: shop, flags: {send_anonymous_usage_stats: false}}",
    "profiles.yml": """
    shop:
      target: dev
      outputs:
        dev: &dev {type: silt, master: 'local[1]', threads: 1}
        kept: {<<: *dev, keep_alive: 5 minutes}
    """,
    "models/orders.sql": "select 1 as id, '{{ env_var('SHOP_COUNTRY', 'none') }}' as country",
    "models/broken.sql": """
    {{ config(materialized='table') }}
    select if('{{ env_var('SHOP_BROKEN', 'no') }}' = 'yes', raise_error('broken'), 1) as x
    """,
}
BIN = Path(sys.executable).parent
SECONDS = 300


@dataclass(frozen=True)
class Shop:
    """A project, and the location of the server that its commands share."""

    folder: Path
    runtime: Path

    def start(self, *command: str, **variables: str) -> subprocess.Popen[str]:
        environment = {name: text for name, text in os.environ.items() if name != SWITCH}
        return subprocess.Popen(
            [str(BIN / command[0]), *command[1:]],
            cwd=self.folder,
            env={**environment, "XDG_RUNTIME_DIR": str(self.runtime), **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *command: str, **variables: str) -> tuple[int, str, str]:
        """Returns exit code, output and errors of a command, without its times."""
        process = self.start(*command, **variables)
        output, errors = process.communicate(timeout=SECONDS)
        return process.returncode, _timeless(output), _timeless(errors)

    def silt(self, *arguments: str, **variables: str) -> str:
        """Returns the output of a successful `silt dbt`."""
        code, output, errors = self.run("silt", "dbt", *arguments, **variables)
        assert code == 0, output + errors
        return output

    def servers(self) -> tuple[control.ServerStatus, ...]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_RUNTIME_DIR", str(self.runtime))
            return control.status()

    def stop(self) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_RUNTIME_DIR", str(self.runtime))
            control.stop()


def _timeless(text: str) -> str:
    return re.sub(r"\d\d:\d\d:\d\d", "TIME", text)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    shop = Shop(tmp_path_factory.mktemp("shop"), tmp_path_factory.mktemp("runtime"))
    for name, text in _PROJECT.items():
        (shop.folder / name).parent.mkdir(exist_ok=True)
        (shop.folder / name).write_text(text)
    shop.silt("parse")
    yield shop
    shop.stop()


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["--version"], marks=pytest.mark.long),
        ["ls", "--no-such-option"],
        pytest.param(["nothing"], marks=pytest.mark.long),
    ],
    ids=" ".join,
)
def test_results_and_errors_equal_those_of_dbt(shop: Shop, arguments: list[str]) -> None:
    assert shop.run("silt", "dbt", *arguments) == shop.run("dbt", *arguments)


def test_one_server_answers_all_commands_with_one_thread_and_no_connection(shop: Shop) -> None:
    for _ in range(2):
        shop.silt("ls")
    (server,) = shop.servers()
    tasks = Path(f"/proc/{server.process}/task").glob("*/comm")
    threads = sorted(each.read_text().strip() for each in tasks)
    # PyArrow's jemalloc has its own thread, and handles forks itself.
    assert [each for each in threads if each != "jemalloc_bg_thd"] == ["python"]
    # A fork may answer before the server has closed its own copy of the connection.
    deadline = time.monotonic() + SECONDS
    while len(sockets := _sockets(server.process)) != 1:  # the socket that it listens on
        assert time.monotonic() < deadline, sockets
        time.sleep(0.05)


def _sockets(process: int) -> list[str]:
    found = []
    for each in Path(f"/proc/{process}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the server has just closed it
            found.append(os.readlink(each))
    return [each for each in found if each.startswith("socket:")]


def test_the_same_server_runs_statements_on_a_kept_spark(shop: Shop) -> None:
    before = shop.servers()[0].commands
    (shop.folder / "warehouse").mkdir(exist_ok=True)
    try:
        code, output, errors = shop.run("silt", "sql", "--target", "kept", "select id + 1 as n from range(2)")
        assert (code, output) == (0, "n\n1\n2\n"), errors
        code, output, errors = shop.run("silt", "sql", "--target", "kept", "select assert_true(id > 5) from range(1)")
        assert code == 2 and output == "" and "is not true" in errors
        (server,) = shop.servers()
        assert server.commands > before + 1
    finally:
        shop.run("silt", "session", "stop")


def test_a_changed_file_is_noticed(shop: Shop) -> None:
    added = shop.folder / "models/added.sql"
    added.write_text("select 1 as id")
    try:
        assert "shop.added" in shop.silt("--quiet", "ls").split()
    finally:
        added.unlink()
    assert "shop.added" not in shop.silt("--quiet", "ls").split()


def test_a_changed_variable_is_noticed(shop: Shop) -> None:
    for country in ("NL", "CH"):
        shop.silt("compile", "--no-populate-cache", SHOP_COUNTRY=country)
        assert f"'{country}'" in (shop.folder / "target/compiled/shop/models/orders.sql").read_text()


def test_each_command_has_its_own_id_and_variables_in_its_artifacts(shop: Shop) -> None:
    seen = []
    for number in ("1", "2"):
        shop.silt("compile", "--no-populate-cache", DBT_ENV_CUSTOM_ENV_NUMBER=number)
        metadata = json.loads((shop.folder / "target/run_results.json").read_text())["metadata"]
        seen.append((metadata["invocation_id"], metadata["env"]))
    assert [env for _, env in seen] == [{"NUMBER": "1"}, {"NUMBER": "2"}]
    assert seen[0][0] != seen[1][0]


def test_a_changed_profile_is_noticed(shop: Shop) -> None:
    profiles = shop.folder / "profiles.yml"
    before = profiles.read_text()
    profiles.write_text(before.replace("threads: 1", "threads: several"))
    try:
        code, output, _ = shop.run("silt", "dbt", "ls")
    finally:
        profiles.write_text(before)
    assert code == 2
    assert "several" in output


@pytest.mark.long
def test_the_server_runs_as_long_as_the_profile_of_the_last_command_requires(shop: Shop) -> None:
    profiles = shop.folder / "profiles.yml"
    before, seen = profiles.read_text(), []
    for text in (before.replace("threads: 1", "threads: 1, keep_alive: 1 hour"), before):
        profiles.write_text(text)
        shop.silt("ls")
        (server,) = shop.servers()
        seen.append(server.keep_alive)
    assert seen == [60 * 60, 15 * 60]


def test_log_lines_are_json_and_coloured_on_request(shop: Shop) -> None:
    lines = [json.loads(line) for line in shop.silt("--log-format", "json", "ls").splitlines() if line.startswith("{")]
    assert lines[0]["info"]["name"] == "MainReportVersion"
    assert "\x1b[" in shop.silt("--use-colors", "ls")
    assert "\x1b[" not in shop.silt("--no-use-colors", "ls")


def test_ctrl_c_ends_a_command_that_serves(shop: Shop) -> None:
    (shop.folder / "target").mkdir(exist_ok=True)
    with shop.start("silt", "dbt", "docs", "serve", "--no-browser", "--port", "0") as process:
        try:
            end = time.monotonic() + SECONDS
            while not _served(process):
                assert time.monotonic() < end
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=SECONDS)
        finally:
            process.kill()
    assert process.returncode not in (0, None)


def _served(process: subprocess.Popen[str]) -> bool:
    assert process.stdout is not None
    return "Press Ctrl+C" in process.stdout.readline()


def test_spark_runs_in_the_command_and_ends_with_it_and_a_failed_run_is_retried(shop: Shop) -> None:
    code, output, _ = shop.run("silt", "dbt", "run", SHOP_BROKEN="yes")
    assert code == 1
    assert "PASS=1 WARN=0 ERROR=1" in output
    results = json.loads((shop.folder / "target/run_results.json").read_text())
    process = json.loads((shop.folder / "target/silt_runs.json").read_text())["runs"][-1]
    assert process["command"].endswith("dbt run")
    assert not Path(f"/proc/{process['process']}").exists()
    assert {each["status"] for each in results["results"]} == {"success", "error"}
    assert "PASS=1 WARN=0 ERROR=0" in shop.silt("retry")


_READS = """
import os, sys
seen = set()
getitem = os._Environ.__getitem__
os._Environ.__getitem__ = lambda self, name: (seen.add(name), getitem(self, name))[1]
from dbt.adapters.silt.command_server import preparation
for _ in preparation.steps():
    pass
print(sorted(seen))
"""
_READ_WITHOUT_EFFECT = {"PATH", "DBT_TEST_BINARY_SERIALIZATION", "GOTOBLAS_MAIN_FREE"}
"""Read again when they are needed, or only by the matrices of numpy."""


@pytest.mark.long
def test_a_variable_that_is_read_during_imports_selects_another_server() -> None:
    # Code that iterates over all variables finds few that are set; variables read by name are noticed in any case.
    few = {name: os.environ[name] for name in ("HOME", "PATH")}
    read = subprocess.run([sys.executable, "-c", _READS], env=few, capture_output=True, text=True, check=True).stdout
    names = set(ast.literal_eval(read))
    assert "DBT_SPARK_LOG_LEVEL" in names
    assert {each for each in names if not each.startswith(request.READ_AT_START)} <= _READ_WITHOUT_EFFECT


def test_with_the_setting_off_silt_dbt_is_plain_dbt(shop: Shop) -> None:
    (server,) = shop.servers()
    assert shop.run("silt", "dbt", "--version", **{SWITCH: "off"})[0] == 0
    with contextlib.suppress(ValueError):
        (after,) = shop.servers()
        assert after.commands == server.commands + 1  # the request before this one
