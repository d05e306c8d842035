"""The command line that repeats a dbt command."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from dbt.adapters.silt.dbt_seams.dbt_command import DbtCommand, command_line, dbt_program, retry_line


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
def test_a_command_line_omits_vars_and_is_quoted_for_a_shell(arguments: list[str], line: str) -> None:
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
def test_a_retry_has_the_same_project_and_target_as_its_command(line: str, retry: str) -> None:
    assert retry_line(line) == retry


@pytest.mark.parametrize(("folder", "program"), [("bin", "dbt"), ("elsewhere", "{started}")])
def test_dbt_is_named_by_its_file_if_the_path_does_not_find_it(
    folder: str, program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = tmp_path / "bin" / "dbt"
    started.parent.mkdir()
    started.touch(mode=0o755)
    monkeypatch.setattr(sys, "argv", [str(started), "run"])
    monkeypatch.setenv("PATH", str(tmp_path / folder))
    assert dbt_program() == program.format(started=started)


def test_the_command_line_of_a_calling_program_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["scheduler", "run", "--all"])
    seen: dict[str, Any] = {"dbt_runner_command_args": ["run", "-s", "orders"], "flags": Namespace(STATE=Path("old"))}
    with click.Context(click.Command("run"), info_name="run", obj=seen):
        typed = DbtCommand.current("run")
    assert (typed.name, typed.directory, typed.state) == ("run", os.getcwd(), None)
    assert typed.line.endswith("dbt run -s orders")


def test_a_retry_is_recognized_with_its_own_state_folder() -> None:
    seen = {"dbt_runner_command_args": ["retry", "--state", "old"], "flags": Namespace(STATE=Path("old"))}
    with click.Context(click.Command("retry"), info_name="retry", obj=seen):
        typed = DbtCommand.current("build")
    assert (typed.name, typed.state) == ("retry", Path("old"))
    assert typed.line.endswith("dbt retry --state old")


@contextlib.contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch, **others: Any) -> Iterator[None]:
    """Makes a terminal the input and output of this process, except for the streams in `others`."""
    screen, device = os.openpty()
    with monkeypatch.context() as patch, open(device) as keys, open(device, "w", closefd=False) as shown:
        for name, stream in {"stdin": keys, "stdout": shown, **others}.items():
            patch.setattr(sys, name, stream)
        yield
    os.close(screen)


def typed(**seen: Any) -> DbtCommand:
    with click.Context(click.Command("run"), info_name="run", obj={"flags": Namespace(STATE=None), **seen}):
        return DbtCommand.current("run")


def test_a_command_on_a_terminal_is_a_persons_unless_a_program_started_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with terminal(monkeypatch):
        of_shell, of_program, of_nobody = typed(), typed(dbt_runner_command_args=["run"]), DbtCommand.current("run")
    assert [each.by_a_person for each in (of_shell, of_program, of_nobody)] == [True, False, False]


@pytest.mark.parametrize("name", ["stdin", "stdout"])
@pytest.mark.parametrize("elsewhere", [None, io.StringIO()], ids=["closed", "a pipe"])
def test_a_command_whose_input_or_output_is_redirected_is_not_a_persons(
    name: str, elsewhere: io.StringIO | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with terminal(monkeypatch, **{name: elsewhere}):
        piped = typed()
    assert not piped.by_a_person
