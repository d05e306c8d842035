"""A dbt command as a logical run: read from dbt's configuration and command line, and recorded in the registry."""

from __future__ import annotations

import contextlib
import json
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from dbt.cli.exceptions import ExceptionExit, ResultExit
from dbt.events.types import CommandCompleted
from dbt_common.events.event_manager_client import cleanup_event_logger
from dbt_common.events.functions import fire_event
from dbt_common.exceptions import DbtRuntimeError
from dbt_common.invocation import get_invocation_id, reset_invocation_id

from dbt import selected_resources
from dbt.adapters.silt.credentials import SiltCredentials
from dbt.adapters.silt.engine.sql.grammar.parse import parse
from dbt.adapters.silt.records.command_result import CommandResult, Ending, KeptResults
from dbt.adapters.silt.records.journal import CommitJournal, JournalEntry
from dbt.adapters.silt.records.run_registry import RunEntry, RunRegistry
from dbt.adapters.silt.runs.logical_run.invocation import Invocation

LONG_AGO = "2020-01-01T00:00:00+00:00"
KILLED = "2020-01-02T00:00:00+00:00"


@pytest.fixture(autouse=True)
def fresh_invocation() -> Iterator[None]:
    reset_invocation_id()
    yield


def config(project: Path, which: str = "run", **fields: Any) -> SimpleNamespace:
    """Returns the part of dbt's configuration that an adapter reads."""
    credentials = {name: fields.pop(name) for name in ("run_id", "resume", "reuse") if name in fields}
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
    return Invocation(given, lambda _: None)


def entered(project: Path) -> list[tuple[str, bool]]:
    return [(each.run_id, each.finished) for each in RunRegistry(project / "target").entries()]


def write_results(project: Path, invocation_id: str, results: Sequence[dict[str, str]] = ()) -> None:
    folder = project / "target"
    folder.mkdir(exist_ok=True)
    document = {"metadata": {"invocation_id": invocation_id, "generated_at": LONG_AGO}, "results": list(results)}
    (folder / "run_results.json").write_text(json.dumps(document))


@contextlib.contextmanager
def typed(*arguments: str, state: str | None = None) -> Iterator[None]:
    """Sets the command line as click does on dbt's main thread."""
    seen = {"dbt_runner_command_args": list(arguments), "flags": Namespace(STATE=state and Path(state))}
    with click.Context(click.Command(arguments[0]), info_name=arguments[0], obj=seen):
        yield


@pytest.fixture
def retry() -> Iterator[None]:
    with typed("retry"):
        yield


def enter(project: Path, invocation_id: str, run_id: str, command: str, started_at: str, finished: bool = True) -> None:
    registry = RunRegistry(project / "target")
    registry.enter(RunEntry(invocation_id, run_id, command, str(project), started_at))
    registry.end(invocation_id, finished)


def committed(project: Path, run: Invocation, node: str) -> None:
    """Adds a commit of a run to the project's journal."""
    CommitJournal(project / "target").append(
        JournalEntry(KILLED, "silt.main.t", run.id, "dev", run.run_id, node, operation="WRITE")
    )


@pytest.fixture
def info(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The logged lines."""
    lines: list[str] = []
    monkeypatch.setattr("dbt.adapters.silt.runs.logical_run.invocation.logger.info", lines.append)
    return lines


def test_a_run_is_entered_and_shown_at_its_start_and_finished_at_its_end(tmp_path: Path, info: list[str]) -> None:
    run = invocation(config(tmp_path))
    assert run.run_id is None
    run.on_connection()
    run.on_connection()
    assert entered(tmp_path) == [(get_invocation_id(), False)]
    assert info == [f"Run id {get_invocation_id()} (dbt's invocation id)"]
    assert run.run_id == get_invocation_id()
    reset_invocation_id()  # the next dbt command in this process begins before the last one's connections are closed
    run.finish()
    run.finish()
    run.on_connection()
    assert [finished for _, finished in entered(tmp_path)] == [True]


def test_an_interrupted_run_is_recorded_as_not_finished(tmp_path: Path) -> None:
    run = invocation(config(tmp_path))
    run.start()
    with pytest.raises(KeyboardInterrupt):
        try:
            raise KeyboardInterrupt
        finally:
            run.finish()
    [entry] = RunRegistry(tmp_path / "target").entries()
    assert (entry.finished, entry.has_results, entry.running) == (False, False, False)
    assert entry.result == CommandResult(Ending.INTERRUPTED) and entry.ended_at is not None


@pytest.mark.parametrize(
    ("statement", "began", "advice"),
    [
        (None, False, "Interrupted before anything was written: the same command starts again."),
        ("select 1", False, "Interrupted before anything was written: the same command starts again."),
        ("create schema x", False, "Interrupted before"),
        ("create table t (i int)", True, "committed work is kept"),
    ],
)
def test_a_run_that_was_interrupted_before_its_first_write_is_not_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str | None, began: bool, advice: str
) -> None:
    lines: list[str] = []
    monkeypatch.setattr("dbt.adapters.silt.runs.logical_run.recorded_end.logger.info", lines.append)
    run = invocation(config(tmp_path))
    run.start()
    if statement is not None:
        run.on_statement(parse(statement))
    with pytest.raises(KeyboardInterrupt):
        try:
            raise KeyboardInterrupt
        finally:
            run.finish()
    [entry] = RunRegistry(tmp_path / "target").entries()
    assert (entry.began, entry.state) == (began, "interrupted")
    assert advice in lines[-1]


@pytest.mark.parametrize(
    ("error", "finished", "expected"),
    [
        (None, True, CommandResult(Ending.SUCCESS)),
        (ResultExit(), True, CommandResult(Ending.FAILED)),
        (ExceptionExit(ValueError("no\n  such macro")), False, CommandResult(Ending.FAILED, problem="no such macro")),
        (ExceptionExit(KeyboardInterrupt()), False, CommandResult(Ending.INTERRUPTED)),  # type: ignore[arg-type]
    ],
)
def test_a_run_records_its_result(
    tmp_path: Path, error: Exception | None, finished: bool, expected: CommandResult
) -> None:
    run = invocation(config(tmp_path))
    run.start()
    with contextlib.suppress(ResultExit, ExceptionExit):
        try:
            if error is not None:
                raise error
        finally:
            run.finish()
    [entry] = RunRegistry(tmp_path / "target").entries()
    assert (entry.finished, entry.result) == (finished, expected)


def test_a_run_records_the_counts_and_failures_of_its_results(tmp_path: Path) -> None:
    run = invocation(config(tmp_path))
    run.start()
    results = [{"unique_id": "model.shop.late", "status": "error"}, {"unique_id": "model.shop.a", "status": "success"}]
    write_results(tmp_path, run.id, results)
    with contextlib.suppress(ResultExit):
        try:
            raise ResultExit
        finally:
            run.finish()
    [entry] = RunRegistry(tmp_path / "target").entries()
    assert entry.result is not None
    assert entry.result.counts == {"pass": 1, "warn": 0, "error": 1, "skip": 0, "reused": 0}
    assert entry.result.failed == ("model.shop.late",)
    kept = KeptResults(tmp_path / "target").of(run.id)
    assert kept is not None and [each["unique_id"] for each in kept["results"]] == ["model.shop.late", "model.shop.a"]


def test_a_run_that_fails_before_its_start_is_recorded_and_not_continued(tmp_path: Path) -> None:
    broken = invocation(config(tmp_path))
    with contextlib.suppress(ExceptionExit):
        try:
            raise ExceptionExit(ValueError("Parsing Error"))
        finally:
            broken.finish()
    [entry] = RunRegistry(tmp_path / "target").entries()
    assert (entry.began, entry.result) == (False, CommandResult(Ending.FAILED, problem="Parsing Error"))
    reset_invocation_id()
    assert invocation(config(tmp_path, resume="2 hours")).run.run_id != entry.run_id


@pytest.mark.parametrize("which", ["test", "run-operation"])
def test_a_failed_command_that_is_not_a_run_is_not_recorded(tmp_path: Path, which: str) -> None:
    command = invocation(config(tmp_path, which))
    with contextlib.suppress(ExceptionExit):
        try:
            raise ExceptionExit(ValueError("Parsing Error"))
        finally:
            command.finish()
    assert entered(tmp_path) == []


@pytest.fixture
def command_is_over() -> Iterator[Callable[[], None]]:
    """Fires the event that dbt fires at the end of each command."""
    yield lambda: fire_event(CommandCompleted(command="run", success=True))
    cleanup_event_logger()


def test_a_dbt_run_is_finished_only_after_its_results_are_written(
    tmp_path: Path, command_is_over: Callable[[], None]
) -> None:
    with typed("run"):
        run = invocation(config(tmp_path))
        run.start()
    run.finish()
    [entry] = RunRegistry(tmp_path / "target").entries()
    assert (entry.finished, entry.running) == (False, True), "a kill now would leave no results"
    command_is_over()
    run.finish()
    assert entered(tmp_path) == [(get_invocation_id(), True)]


def test_a_run_inside_the_except_block_of_a_program_is_finished(tmp_path: Path) -> None:
    try:
        raise ValueError("the program's")
    except ValueError:
        run = invocation(config(tmp_path))
        run.start()
        run.finish()
    assert entered(tmp_path) == [(get_invocation_id(), True)]


def test_a_run_whose_end_cannot_be_recorded_only_warns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warnings: list[str] = []
    monkeypatch.setattr("dbt.adapters.silt.runs.logical_run.recorded_end.logger.warning", warnings.append)
    run = invocation(config(tmp_path))
    run.start()
    (tmp_path / "target" / "silt_runs.json").write_text("{")
    run.finish()
    assert "could not be recorded" in warnings[0] and "silt_runs.json" in warnings[0]


def test_an_operation_is_a_run_from_its_first_changing_statement_on(tmp_path: Path, info: list[str]) -> None:
    operation = invocation(config(tmp_path, "run-operation", run_id="R1"))
    operation.on_connection()
    for looking in ("select 1", "describe history main.orders", "show tables", "vacuum main.orders dry run"):
        operation.on_statement(parse(looking))
    assert (info, entered(tmp_path), operation.run_id) == ([], [], None)
    operation.on_statement(parse("optimize main.orders"))
    operation.on_statement(parse("vacuum main.orders"))
    assert info == ["Run id R1 (the profile's run_id)"]
    assert entered(tmp_path) == [("R1", False)]


@pytest.mark.parametrize("which", ["test", "compile", "show", "generate"])
def test_a_command_that_builds_nothing_is_not_a_run(tmp_path: Path, which: str) -> None:
    command = invocation(config(tmp_path, which))
    command.on_connection()
    command.on_statement(parse("insert into main.orders values (1)"))
    command.start()
    command.finish()
    assert not command.writes
    assert command.run_id is None
    assert entered(tmp_path) == []


def test_units_have_the_profiles_run_id_and_the_commands_flags(tmp_path: Path) -> None:
    context = invocation(config(tmp_path, run_id="R1", empty=True)).context
    assert (context.project, context.target, context.run_id, context.suffix) == ("shop", "dev", "R1", "+empty")


def test_a_rerun_with_resume_first_shows_the_run_that_it_continues(tmp_path: Path, info: list[str]) -> None:
    with typed("run", "-s", "orders"):
        killed = invocation(config(tmp_path, resume="2 hours"))
        killed.start()
        killed._registry.end(killed.id, finished=False)  # its process is gone
    first = killed.id
    reset_invocation_id()
    info.clear()
    with typed("run", "-s", "orders"):
        rerun = invocation(config(tmp_path, resume="2 hours"))
        rerun.start()
    assert rerun.run_id == first
    assert info[0].startswith("Continuing `") and "run -s orders`" in info[0]
    assert info[1] == f"Run id {first} (a run that did not finish)"


def test_a_rerun_without_resume_first_warns_of_the_killed_run_with_the_command_to_continue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    for level in ("warning", "info"):
        monkeypatch.setattr(f"dbt.adapters.silt.runs.logical_run.invocation.logger.{level}", said.append)
    killed = invocation(config(tmp_path))
    killed.start()
    killed._registry.end(killed.id, finished=False)  # its process is gone
    committed(tmp_path, killed, "model.shop.orders")
    monkeypatch.setattr(selected_resources, "SELECTED_RESOURCES", {"model.shop.orders"})
    first = killed.id
    reset_invocation_id()
    said.clear()
    again = invocation(config(tmp_path))
    again.start()
    assert again.run_id != first
    assert said[0].startswith("The last run of this command, ") and f"{{silt_run_id: {first}}}" in said[0]
    assert said[1] == f"Run id {again.run_id} (dbt's invocation id)"
    reset_invocation_id()
    said.clear()
    invocation(config(tmp_path)).start()
    assert said[0].startswith("Another run of this project is in progress: ") and str(again.run_id) in said[0]


@pytest.mark.parametrize("has_committed", [False, True])
def test_a_run_that_ended_with_an_error_is_continued_only_if_it_committed_something(
    tmp_path: Path, info: list[str], has_committed: bool
) -> None:
    first = invocation(config(tmp_path, resume="2 hours"))
    first.start()
    if has_committed:
        committed(tmp_path, first, "model.shop.orders")
    with contextlib.suppress(ExceptionExit):
        try:
            raise ExceptionExit(ValueError("Java is missing"))
        finally:
            first.finish()
    earlier = first.id
    reset_invocation_id()
    info.clear()
    again = invocation(config(tmp_path, resume="2 hours"))
    again.start()
    assert (again.run_id == earlier) == has_committed
    assert info[0].startswith("Continuing" if has_committed else "Run id ")


def test_a_killed_run_without_commits_causes_no_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warnings: list[str] = []
    monkeypatch.setattr("dbt.adapters.silt.runs.logical_run.invocation.logger.warning", warnings.append)
    monkeypatch.setattr(selected_resources, "SELECTED_RESOURCES", {"model.shop.orders"})
    killed = invocation(config(tmp_path))
    killed.start()
    killed._registry.end(killed.id, finished=False)  # its process is gone
    reset_invocation_id()
    invocation(config(tmp_path)).start()
    assert warnings == []


@pytest.mark.usefixtures("retry")
def test_a_retry_uses_the_id_of_the_retried_run_and_reports_the_unused_profile_id(
    tmp_path: Path, info: list[str]
) -> None:
    enter(tmp_path, "I1", "R1", "dbt run", LONG_AGO)
    write_results(tmp_path, "I1")
    again = invocation(config(tmp_path, run_id="P"))
    again.start()
    assert info == ["Run id R1 (the run that is retried; the profile's run_id P is not used)"]
    entry = RunRegistry(tmp_path / "target").entries()[-1]
    assert (entry.run_id, entry.command, entry.repeats) == ("R1", "dbt run", "I1")


@pytest.mark.usefixtures("retry")
def test_a_retry_after_a_killed_run_is_refused_with_the_command_to_continue(tmp_path: Path) -> None:
    enter(tmp_path, "I1", "R1", "dbt run", "2019-12-31T00:00:00+00:00")
    enter(tmp_path, "I2", "R2", "dbt run -s orders", KILLED, finished=False)
    write_results(tmp_path, "I1")
    with pytest.raises(DbtRuntimeError, match=r"dbt run -s orders --vars '\{silt_run_id: R2\}'"):
        invocation(config(tmp_path))


def test_a_retry_from_a_state_folder_uses_the_id_recorded_there(tmp_path: Path) -> None:
    enter(tmp_path, "I1", "R1", "dbt run", LONG_AGO)
    write_results(tmp_path, "I1")
    (tmp_path / "target").rename(tmp_path / "state")
    enter(tmp_path, "I2", "R2", "dbt run", KILLED, finished=False)
    with typed("retry", "--state", "state", state="state"):
        assert invocation(config(tmp_path)).run.run_id == "R1"
        assert invocation(config(tmp_path, cli_vars={"silt_run_id": "V"})).run.run_id == "V"


def test_a_profile_without_a_project_is_enough_to_connect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # dbt keeps the flags of the last command in the process.
    monkeypatch.setattr("dbt.adapters.silt.runs.logical_run.invocation.flags", Namespace)
    run = invocation(SimpleNamespace(credentials=SiltCredentials()))
    assert run.project_root == tmp_path
    assert not run.writes


@pytest.mark.parametrize(
    ("which", "inline", "needed"),
    [
        ("run", None, True),
        ("test", None, False),
        ("show", None, False),
        ("show", "select id from {{ ref('orders') }} where id > 1 limit 3", False),
        ("show", "select id, count(*) from {{ ref('orders') }} GROUP BY id", True),
        ("show", "with a as (select 1) select * from a", True),
        ("show", "select * from range(3)", True),
    ],
)
def test_spark_starts_while_dbt_reads_the_project_only_for_commands_that_surely_need_it(
    tmp_path: Path, which: str, inline: str | None, needed: bool
) -> None:
    assert invocation(config(tmp_path, which, inline=inline)).starts_spark_early is needed


@pytest.mark.parametrize("which", ["test", "show", "compile", "generate"])
def test_spark_starts_early_if_the_last_command_of_this_kind_needed_it(tmp_path: Path, which: str) -> None:
    (tmp_path / "target").mkdir()
    for is_needed, was_needed in ((True, False), (True, True), (False, True), (False, False)):
        command = invocation(config(tmp_path, which))
        assert command.starts_spark_early is was_needed
        assert not invocation(config(tmp_path, "show" if which == "test" else "test")).starts_spark_early
        if is_needed:
            command.on_session()
        command.finish()


@pytest.mark.parametrize("which", ["run", "build", "seed", "snapshot"])
def test_spark_starts_late_if_the_last_command_of_this_kind_reused_everything(tmp_path: Path, which: str) -> None:
    (tmp_path / "target").mkdir()
    for is_needed, was_needed in ((True, True), (False, True), (False, False), (True, False), (True, True)):
        command = invocation(config(tmp_path, which, reuse="unchanged"))
        assert command.starts_spark_early is was_needed
        assert invocation(config(tmp_path, which, reuse="unchanged", full_refresh=True)).starts_spark_early
        assert invocation(config(tmp_path, which, reuse="never")).starts_spark_early
        if is_needed:
            command.on_session()
        command.finish()


def test_a_target_path_that_cannot_be_written_fails_no_command(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("a file")
    command = invocation(config(tmp_path, "show"))
    command.on_session()
    command.finish()
    assert not invocation(config(tmp_path, "show")).starts_spark_early
