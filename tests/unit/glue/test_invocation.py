"""A dbt command as a logical run: gathered from dbt's configuration and command line, entered and marked."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from dbt_common.exceptions import DbtRuntimeError
from dbt_common.invocation import get_invocation_id, reset_invocation_id

from dbt.adapters.silt.credentials import SiltCredentials
from dbt.adapters.silt.invocation import Invocation
from dbt.adapters.silt.runs import RunEntry, RunRegistry

LONG_AGO = "2020-01-01T00:00:00+00:00"
KILLED = "2020-01-02T00:00:00+00:00"


@pytest.fixture(autouse=True)
def fresh_invocation() -> Iterator[None]:
    reset_invocation_id()
    yield


def config(project: Path, which: str = "run", **fields: Any) -> SimpleNamespace:
    """What an adapter reads of dbt's configuration."""
    credentials = {name: fields.pop(name) for name in ("run_id", "resume") if name in fields}
    return SimpleNamespace(
        credentials=SiltCredentials(**credentials),
        project_root=str(project),
        project_target_path=str(project / "target"),
        project_name="shop",
        target_name="dev",
        cli_vars=fields.pop("cli_vars", {}),
        args=Namespace(which=which, **fields),
    )


def invocation(given: SimpleNamespace) -> Invocation:
    return Invocation(given, lambda previous: None)


def entered(project: Path) -> list[tuple[str, bool]]:
    return [(each.run_id, each.finished) for each in RunRegistry(project / "target").entries()]


def write_results(project: Path, invocation_id: str) -> None:
    folder = project / "target"
    folder.mkdir(exist_ok=True)
    document = {"metadata": {"invocation_id": invocation_id, "generated_at": LONG_AGO}, "results": []}
    (folder / "run_results.json").write_text(json.dumps(document))


@pytest.fixture
def retry() -> Iterator[None]:
    """The command line of `dbt retry`, as click has it on dbt's main thread."""
    with click.Context(click.Command("retry"), info_name="retry") as context:
        context.params = {"state": None}
        yield


def test_a_run_is_entered_when_it_starts_and_marked_when_it_ends(tmp_path: Path) -> None:
    run = invocation(config(tmp_path))
    run.start()
    assert entered(tmp_path) == [(get_invocation_id(), False)]
    run.finish()
    run.finish()
    assert entered(tmp_path) == [(get_invocation_id(), True)]


@pytest.mark.parametrize("which", ["test", "compile", "show", "run-operation", "generate"])
def test_a_command_that_builds_nothing_is_no_run(tmp_path: Path, which: str) -> None:
    command = invocation(config(tmp_path, which))
    command.start()
    command.finish()
    assert not command.writes
    assert entered(tmp_path) == []


def test_units_carry_the_profiles_run_id_and_the_commands_flags(tmp_path: Path) -> None:
    context = invocation(config(tmp_path, run_id="R1", empty=True)).context
    assert (context.project, context.target, context.run_id, context.suffix) == ("shop", "dev", "R1", "+empty")


def test_a_retry_works_under_the_id_of_what_it_repeats(tmp_path: Path, retry: None) -> None:
    RunRegistry(tmp_path / "target").enter(RunEntry("I1", "R1", "dbt run", {}, LONG_AGO))
    write_results(tmp_path, "I1")
    assert invocation(config(tmp_path, run_id="P")).run.run_id == "R1"


def test_a_retry_after_a_kill_is_refused_with_the_command_that_continues(tmp_path: Path, retry: None) -> None:
    registry = RunRegistry(tmp_path / "target")
    registry.enter(RunEntry("I1", "R1", "dbt run", {}, "2019-12-31T00:00:00+00:00"))
    registry.enter(RunEntry("I2", "R2", "dbt run -s orders", {}, KILLED))
    write_results(tmp_path, "I1")
    with pytest.raises(DbtRuntimeError, match=r"dbt run -s orders --vars '\{\"silt_run_id\": \"R2\"\}'"):
        invocation(config(tmp_path))


def test_a_retry_from_a_state_folder_is_the_users_own_choice(tmp_path: Path) -> None:
    RunRegistry(tmp_path / "target").enter(RunEntry("I2", "R2", "dbt run", {}, KILLED))
    write_results(tmp_path, "I1")
    (tmp_path / "target").rename(tmp_path / "state")
    with click.Context(click.Command("retry"), info_name="retry") as context:
        context.params = {"state": "state"}
        run = invocation(config(tmp_path, cli_vars={"silt_run_id": "V"}))
    assert run.run.run_id == "V"


def test_a_profile_without_a_project_is_enough_to_connect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # dbt's flags are the process's: those of the last command that ran in it.
    monkeypatch.setattr("dbt.adapters.silt.invocation.get_flags", Namespace)
    run = invocation(SimpleNamespace(credentials=SiltCredentials()))
    assert run.project_root == tmp_path
    assert not run.writes
