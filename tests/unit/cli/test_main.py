"""The command as a program: its exit codes, its output streams, and the modules that it does not need."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from dbt.adapters.silt.__version__ import version
from dbt.adapters.silt.cli import runs
from dbt.adapters.silt.cli.main import SUBCOMMANDS, main
from tests.unit.cli.house import House, rows

ROOT = Path(__file__).parents[3]

WITHOUT_SPARK_AND_DBT = """
import importlib.abc, sys

class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        root = name.split(".")[0]
        ours = name in ("dbt", "dbt.adapters") or name.startswith("dbt.adapters.silt")
        if root in ("pyspark", "py4j", "dbt_common", "numpy", "pandas", "agate") or (root == "dbt" and not ours):
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocked())
from dbt.adapters.silt.cli.main import main
sys.exit(main())
"""


def program(*arguments: str, code: str | None = None, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Runs the command in a separate process."""
    start: Sequence[str] = ["-c", code] if code else ["-m", "dbt.adapters.silt.cli"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        [sys.executable, "-W", "error", *start, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


@pytest.fixture
def filled(house: House) -> House:
    """A warehouse with a run, and rows deleted by a deletion vector."""
    log = house.running("nightly").create("main.künden", rows(0, 40), {"delta.enableDeletionVectors": "true"})
    house.running("nightly").mark(log, [3, 5])
    return house


@pytest.mark.parametrize(
    "arguments",
    [
        ("runs",),
        ("run", "nightly"),
        ("history", "main.künden"),
        ("show", "main.künden"),
        ("check",),
        ("rollback", "nightly", "--drop-created"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_the_command_needs_neither_spark_nor_dbt_nor_numpy_nor_pandas(
    filled: House, arguments: tuple[str, ...]
) -> None:
    done = program(*arguments, "--warehouse", str(filled.folder), "--json", code=WITHOUT_SPARK_AND_DBT)
    assert (done.stderr, done.returncode) == ("", 0)
    assert isinstance(json.loads(done.stdout), dict)


def test_arrow_returns_times_in_a_process_of_the_command_although_pandas_is_installed() -> None:
    code = (
        "import sys; from dbt.adapters.silt.cli import main; sys.argv = ['silt']; main.main(); import pyarrow as pa; "
        "print(pa.array([0], pa.timestamp('us', 'UTC')).to_pylist()[0].isoformat(), sys.modules.get('pandas'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "1970-01-01T00:00:00+00:00 None"


def test_each_subcommand_has_a_help_text(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    overview = capsys.readouterr().out
    assert ended.value.code == 0
    for name in SUBCOMMANDS:
        assert re.search(rf"\n    {name}\s", overview)
        with pytest.raises(SystemExit):
            main([name, "--help"])
        assert capsys.readouterr().out.startswith(f"usage: silt {name} ")


def test_the_version_option_prints_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"silt {version}\n"


@pytest.mark.parametrize("arguments", [["walk"], ["show"], ["runs", "--no-such"]])
def test_invalid_arguments_end_with_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("usage: silt")


def test_without_a_subcommand_the_subcommands_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    printed = capsys.readouterr().out
    assert all(re.search(rf"\n    {name}\s", printed) for name in SUBCOMMANDS)


def test_an_error_is_one_line_with_its_remedy_and_no_traceback(tmp_path: Path) -> None:
    done = program("runs", "--warehouse", str(tmp_path / "nowhere"))
    assert (done.stdout, done.returncode) == ("", 2)
    assert done.stderr.startswith("silt: [SILT_INVALID_SETTING] the folder ")
    assert "--warehouse PATH" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_damaged_log_ends_with_the_exit_code_for_problems(filled: House, capsys: pytest.CaptureFixture[str]) -> None:
    (filled.folder / "main" / "künden" / "_delta_log" / f"{0:020d}.json").write_text("{")
    assert main(["show", "main.künden", "--warehouse", str(filled.folder)]) == 1
    assert "SILT_CORRUPT_LOG" in capsys.readouterr().err


def test_a_closed_output_pipe_is_no_error(filled: House) -> None:
    show = [sys.executable, "-m", "dbt.adapters.silt.cli", "show", "main.künden", "--warehouse", str(filled.folder)]
    command = f"{shlex.join(show)} | true"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, shell=True, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.stderr, done.returncode) == ("", 0)


@pytest.mark.parametrize("moment", ["dbt.adapters.silt.cli.runs", "dbt.adapters.silt.cli.warehouses"])
def test_an_interrupt_while_the_command_is_loaded_prints_nothing(
    moment: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    for name in ("dbt.adapters.silt.cli.runs", moment):
        monkeypatch.delitem(sys.modules, name, raising=False)
    finder = type(
        "Interrupts", (), {"find_spec": staticmethod(lambda name, *_: interrupted() if name == moment else None)}
    )
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    assert main(["runs"]) == 130
    assert capsys.readouterr() == ("", "")


def test_an_interrupt_before_the_command_server_takes_dbts_command_prints_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dbt.adapters.silt.command_server.client.main", interrupted)
    assert main(["dbt", "build"]) == 130
    assert capsys.readouterr() == ("", "")


def test_an_interrupt_ends_with_exit_code_130(filled: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(runs, "histories", interrupted)
    assert main(["runs", "--warehouse", str(filled.folder)]) == 130


def test_names_in_any_script_are_printed_unchanged(filled: House) -> None:
    done = program("runs", "--warehouse", str(filled.folder), "--json")
    assert json.loads(done.stdout)["runs"][0]["tables"] == ["silt.main.künden"]
    assert "künden" in done.stdout
