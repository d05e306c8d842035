"""The line that a person types to do a dbt command again."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import click
import pytest

from dbt.adapters.silt.runs.dbt_command import DbtCommand, command_line, dbt_program, retry_line


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["run", "-s", "a b"], "dbt run -s 'a b'"),
        (["run", "--vars", "{x: 1}", "--threads", "2"], "dbt run --threads 2"),
        (["--quiet", "run", "--vars={x: 1}", "--project-dir", "it's"], """dbt --quiet run --project-dir 'it'"'"'s'"""),
        (["run", "--vars", "--vars", "--target", "prod"], "dbt run --target prod"),
        (["-m", "pytest", "tests"], "dbt run"),
    ],
)
def test_leaves_its_variables_out_and_quotes_for_a_shell(arguments: list[str], line: str) -> None:
    assert command_line("run", "dbt", arguments) == line


@pytest.mark.parametrize(
    ("line", "retry"),
    [
        ("dbt run -s 'a b' --full-refresh", "dbt retry"),
        ("dbt build --target prod --threads 2 --project-dir='it''s'", "dbt retry --target prod --project-dir=its"),
        (
            "/env/bin/dbt --quiet seed --profiles-dir 'my profiles' -t dev",
            "/env/bin/dbt retry --profiles-dir 'my profiles' -t dev",
        ),
    ],
)
def test_the_retry_of_a_command_is_of_the_same_project_and_target(line: str, retry: str) -> None:
    assert retry_line(line) == retry


@pytest.mark.parametrize(("folder", "program"), [("bin", "dbt"), ("elsewhere", "{started}")])
def test_names_dbts_file_where_the_path_has_another_or_none(
    folder: str, program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = tmp_path / "bin" / "dbt"
    started.parent.mkdir()
    started.touch(mode=0o755)
    monkeypatch.setattr(sys, "argv", [str(started), "run"])
    monkeypatch.setenv("PATH", str(tmp_path / folder))
    assert dbt_program() == program.format(started=started)


def test_a_programs_own_command_line_is_not_taken_for_dbts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["scheduler", "run", "--all"])
    seen: dict[str, Any] = {"dbt_runner_command_args": ["run", "-s", "orders"], "flags": Namespace(STATE=Path("old"))}
    with click.Context(click.Command("run"), info_name="run", obj=seen):
        typed = DbtCommand.current("run")
    assert (typed.name, typed.directory, typed.state) == ("run", os.getcwd(), None)
    assert typed.line.endswith("dbt run -s orders")


def test_a_retry_is_known_with_its_own_state() -> None:
    seen = {"dbt_runner_command_args": ["retry", "--state", "old"], "flags": Namespace(STATE=Path("old"))}
    with click.Context(click.Command("retry"), info_name="retry", obj=seen):
        typed = DbtCommand.current("build")
    assert (typed.name, typed.state) == ("retry", Path("old"))
    assert typed.line.endswith("dbt retry --state old")
