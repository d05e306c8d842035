"""Ctrl-C and SIGTERM stop the Spark jobs of the run and dbt, which finally prints how to resume.

Commits are kept, and no table is partly written.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable

from dbt.adapters.silt.command_server import control
from dbt.adapters.silt.records.run_registry import RunRegistry
from dbt.adapters.silt.session.java_launch import find_java
from tests.files import write_files

_LONG = "select id as k from range(10000000000000) where hash(id) % 10000 = 0"
_APPENDED = f"""
{{{{ config(materialized='incremental') }}}}
-- depends_on: {{{{ ref('quick') }}}}
{{% if is_incremental() %}} {_LONG} {{% else %}} select 1L as k {{% endif %}}
"""
_SLOW_JAVA = """#!/bin/sh
case "$*" in *-version*) exec {} "$@";; esac
exec cat > /dev/null  # never answers, and ends with its standard input
"""
_PROJECT = {
    "dbt_project.yml": "{name: interrupted, version: '1.0', profile: interrupted, models: {+materialized: table}}",
    "profiles.yml": "{interrupted: {target: dev, outputs: {dev: {type: silt, master: 'local[2]', threads: 2}}}}",
    "models/quick.sql": "select 1 as k",
    "models/appended.sql": _APPENDED,
    "models/made.sql": f"-- depends_on: {{{{ ref('quick') }}}}\n{_LONG}",
    "models/after.sql": "select * from {{ ref('made') }}",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("interrupted")
    write_files(folder, _PROJECT)
    assert _dbt(folder, "run", "--select", "quick", "appended").wait(timeout=300) == 0
    return folder


# A terminal sends SIGINT to all of its processes, a scheduler SIGTERM to dbt only.
@pytest.mark.parametrize(
    ("send", "number", "code", "reason"),
    [
        pytest.param(os.killpg, signal.SIGINT, 2, "Interrupted", id="Ctrl-C", marks=pytest.mark.long),
        pytest.param(os.kill, signal.SIGTERM, 143, "Ended by SIGTERM", id="SIGTERM"),
    ],
)
@pytest.mark.parametrize(
    "program", [("dbt",), pytest.param(("silt", "dbt"), marks=pytest.mark.long)], ids=lambda words: " ".join(words)
)
def test_an_interrupt_stops_spark_leaves_each_table_old_or_new_and_prints_how_to_resume(
    project: Path,
    program: tuple[str, ...],
    send: Callable[[int, int], None],
    number: int,
    code: int,
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    before = _table(project, "quick").version()
    process = _dbt(project, "run", "--target", "dev", program=program)
    _wait(process, lambda: _is_being_written(project, "made") and _is_being_written(project, "appended"))
    send(process.pid, number)
    assert process.wait(timeout=120) == code
    _wait(None, lambda: not _lives(process.pid))
    control.stop()
    last = (project / "output.log").read_text().rstrip().splitlines()[-1]
    assert last.endswith(f"{reason}: committed work is kept, and `dbt retry --target dev` runs the rest.")

    assert _table(project, "quick").version() == before + 1
    assert _table(project, "appended").to_pyarrow_table().to_pylist() == [{"k": 1}]
    assert not DeltaTable.is_deltatable(str(project / "warehouse/main/made"))
    results = json.loads((project / "target/run_results.json").read_text())["results"]
    left = dict.fromkeys(("model.interrupted.made", "model.interrupted.appended", "model.interrupted.after"), "skipped")
    assert {result["unique_id"]: result["status"] for result in results} == {
        "model.interrupted.quick": "success",
        **left,
    }


def test_an_interrupt_while_spark_starts_ends_at_once_and_says_that_nothing_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path, {**_PROJECT, "java/bin/java": _SLOW_JAVA.format(find_java().path)})
    (tmp_path / "java/bin/java").chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    process = _dbt(tmp_path, "run", "--select", "quick")
    _wait(process, lambda: "Run id" in _output(tmp_path))
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(timeout=60) == 2
    _wait(None, lambda: not _lives(process.pid))
    shown = _output(tmp_path)
    assert shown.rstrip().endswith("Interrupted before anything was written: the same command starts again.")
    assert "Traceback" not in shown
    assert not list(tmp_path.glob("warehouse/main/*"))
    [entry] = RunRegistry(tmp_path / "target").entries()
    assert not entry.began


def _dbt(project: Path, *arguments: str, program: tuple[str, ...] = ("dbt",)) -> subprocess.Popen[bytes]:
    """Starts dbt in its own process group, as a terminal does."""
    bin = Path(sys.executable).parent
    path = f"{bin}:{os.environ['PATH']}"
    with (project / "output.log").open("ab") as log:
        return subprocess.Popen(
            [str(bin / program[0]), *program[1:], "--no-use-colors", *arguments],
            cwd=project,
            env={**os.environ, "PATH": path},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _output(project: Path) -> str:
    return (project / "output.log").read_text()


def _is_being_written(project: Path, table: str) -> bool:
    return any((project / "warehouse/main" / table).glob("*/_temporary/0"))


def _table(project: Path, name: str) -> DeltaTable:
    return DeltaTable(str(project / "warehouse/main" / name))


def _wait(process: subprocess.Popen[bytes] | None, until: Callable[[], bool], seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < deadline
        assert process is None or process.poll() is None
        time.sleep(0.05)


def _lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
