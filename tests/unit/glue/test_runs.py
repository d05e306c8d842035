"""Which run id a dbt command works under, and when `dbt retry` is refused."""

from __future__ import annotations

import os
import socket
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError
from dbt.adapters.silt.runs import (
    REGISTRY_FILE,
    LogicalRun,
    Origin,
    PreviousResults,
    RunEntry,
    RunRegistry,
    RunSources,
    check_retry,
    choose_run,
    command_line,
    read_results,
    resumable,
)

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=timezone.utc)


def entry(invocation: str, run: str, minutes_ago: int = 10, **fields: Any) -> RunEntry:
    started = (NOW - timedelta(minutes=minutes_ago)).isoformat()
    return RunEntry(invocation, run, "dbt run", {}, started, **fields)


def results(invocation: str, minutes_ago: int = 5, *run_ids: str) -> PreviousResults:
    return PreviousResults(invocation, NOW - timedelta(minutes=minutes_ago), run_ids, ("`silt`.`main`.`orders`",))


def sources(**fields: Any) -> RunSources:
    return RunSources(**{"invocation_id": "I9", "variables": {}, **fields})


def chosen(given: RunSources, commits: str | None = None) -> LogicalRun:
    return choose_run(given, NOW, lambda previous: commits)


class TestChoice:
    def test_a_variable_comes_before_everything(self) -> None:
        given = sources(
            variables={"silt_run_id": "V"}, profile_run_id="P", previous=results("I1"), entries=(entry("I1", "R1"),)
        )
        assert chosen(given) == LogicalRun("V", Origin.VARIABLE)

    def test_a_retry_takes_the_id_of_the_run_it_repeats_before_the_profiles(self) -> None:
        given = sources(profile_run_id="P", previous=results("I1"), entries=(entry("I1", "R1"),))
        assert chosen(given) == LogicalRun("R1", Origin.RETRY)

    def test_a_retry_of_a_retry_keeps_the_first_runs_id(self) -> None:
        given = sources(previous=results("I2"), entries=(entry("I1", "R1", 30), entry("I2", "R1", 20)))
        assert chosen(given).run_id == "R1"

    def test_a_retry_looks_into_the_results_where_the_registry_is_gone(self) -> None:
        assert chosen(sources(previous=results("I1", 5, "R1")), commits="C").run_id == "R1"

    def test_a_retry_looks_into_the_commits_where_the_results_do_not_say(self) -> None:
        assert chosen(sources(previous=results("I1")), commits="C").run_id == "C"

    def test_a_retry_never_takes_a_fresh_id(self) -> None:
        with pytest.raises(InvalidSettingError, match="run id of invocation I1"):
            chosen(sources(previous=results("I1"), profile_run_id="P"))

    @pytest.mark.parametrize("unset", [None, "", "  "])
    def test_an_unset_profile_field_is_none(self, unset: str | None) -> None:
        assert chosen(sources(profile_run_id=unset)) == LogicalRun("I9", Origin.INVOCATION)

    def test_the_profiles_id_comes_before_an_unfinished_run(self) -> None:
        given = sources(profile_run_id="P", resume=timedelta(hours=1), entries=(entry("I1", "R1"),))
        assert chosen(given) == LogicalRun("P", Origin.PROFILE)

    def test_an_unfinished_run_is_continued_where_the_profile_asks_for_it(self) -> None:
        given = sources(resume=timedelta(hours=1), entries=(entry("I1", "R1"),))
        assert chosen(given) == LogicalRun("R1", Origin.RESUME)

    def test_every_other_run_is_new_work(self) -> None:
        assert chosen(sources(entries=(entry("I1", "R1"),))) == LogicalRun("I9", Origin.INVOCATION)

    def test_a_number_is_an_id_too(self) -> None:
        assert chosen(sources(variables={"silt_run_id": 0})).run_id == "0"


class TestResume:
    @pytest.mark.parametrize(
        "found",
        [
            entry("I1", "R1", minutes_ago=121),
            entry("I1", "R1", finished=True),
            entry("I1", "R1", process=os.getpid(), host=socket.gethostname()),
            entry("I9", "R9"),
        ],
        ids=["too old", "finished", "still running", "itself"],
    )
    def test_a_run_is_not_continued(self, found: RunEntry) -> None:
        assert resumable((found,), "I9", timedelta(hours=2), NOW) is None

    def test_only_the_newest_run_counts(self) -> None:
        entries = (entry("I1", "R1", minutes_ago=20), entry("I2", "R2", minutes_ago=10, finished=True))
        assert resumable(entries, "I9", timedelta(hours=2), NOW) is None


class TestRetry:
    def test_is_refused_where_a_later_run_left_no_results(self) -> None:
        entries = (entry("I1", "R1", 30, finished=True), entry("I2", "R2", 2))
        with pytest.raises(InvalidSettingError) as refusal:
            check_retry(entries, results("I1", 20), "I9")
        assert """`dbt run --vars '{"silt_run_id": "R2"}'`""" in str(refusal.value)
        assert "killed" in str(refusal.value)

    def test_says_so_where_the_later_run_is_still_running(self) -> None:
        running = entry("I2", "R2", 2, process=os.getpid(), host=socket.gethostname())
        with pytest.raises(InvalidSettingError, match="is still running"):
            check_retry((running,), results("I1", 20), "I9")

    def test_the_command_keeps_the_variables_of_the_killed_run(self) -> None:
        killed = replace(entry("I2", "R2", 2), variables={"day": "2026-01-01"}, command="dbt build -s orders")
        assert (
            killed.continuing_command() == """dbt build -s orders --vars '{"day": "2026-01-01", "silt_run_id": "R2"}'"""
        )

    def test_is_allowed_where_the_last_run_left_its_results(self) -> None:
        check_retry((entry("I1", "R1", 30), entry("I2", "R2", 20)), results("I2", 10), "I9")

    def test_is_allowed_after_a_killed_retry_of_the_same_run(self) -> None:
        check_retry((entry("I1", "R1", 30), entry("I2", "R1", 2)), results("I1", 20), "I9")

    def test_is_allowed_where_something_newer_than_the_killed_run_wrote_results(self) -> None:
        check_retry((entry("I1", "R1", 30),), results("T1", 1), "I9")

    def test_does_not_mind_its_own_entry(self) -> None:
        check_retry((entry("I1", "R1", 30), entry("I9", "R1", 0)), results("I1", 20), "I9")


class TestRegistry:
    def test_is_empty_where_there_is_no_file(self, tmp_path: Path) -> None:
        assert RunRegistry(tmp_path / "target").entries() == ()

    def test_keeps_what_was_entered_and_finished(self, tmp_path: Path) -> None:
        registry = RunRegistry(tmp_path / "target")
        registry.enter(entry("I1", "R1"))
        registry.enter(entry("I2", "R2"))
        registry.finish("I1")
        assert [(each.run_id, each.finished) for each in registry.entries()] == [("R1", True), ("R2", False)]

    def test_notes_the_process_so_that_a_running_run_is_known_as_such(self, tmp_path: Path) -> None:
        registry = RunRegistry(tmp_path)
        registry.enter(entry("I1", "R1"))
        assert registry.entries()[0].is_running
        registry.finish("I1")
        assert not registry.entries()[0].is_running

    def test_enters_an_invocation_once(self, tmp_path: Path) -> None:
        registry = RunRegistry(tmp_path)
        registry.enter(entry("I1", "R1"))
        registry.enter(entry("I1", "R1"))
        assert len(registry.entries()) == 1

    def test_forgets_the_oldest_runs(self, tmp_path: Path) -> None:
        registry = RunRegistry(tmp_path)
        for number in range(205):
            registry.enter(entry(f"I{number}", f"R{number}"))
        assert [registry.entries()[0].run_id, registry.entries()[-1].run_id] == ["R5", "R204"]

    def test_a_damaged_file_is_an_error_and_never_an_empty_answer(self, tmp_path: Path) -> None:
        (tmp_path / REGISTRY_FILE).write_text('{"runs": [')
        with pytest.raises(InvalidSettingError, match=REGISTRY_FILE):
            RunRegistry(tmp_path).entries()

    def test_loses_no_entry_of_two_processes(self, tmp_path: Path) -> None:
        processes = [get_context("fork").Process(target=_enter_some, args=(tmp_path, name)) for name in "AB"]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        assert len(RunRegistry(tmp_path).entries()) == 40


def _enter_some(folder: Path, name: str) -> None:
    for number in range(20):
        RunRegistry(folder).enter(entry(f"{name}{number}", "R"))


def test_results_without_a_file_are_none(tmp_path: Path) -> None:
    assert read_results(tmp_path / "run_results.json") is None


def test_results_name_their_invocation_run_ids_and_relations(tmp_path: Path) -> None:
    path = tmp_path / "run_results.json"
    path.write_text(
        """{"metadata": {"invocation_id": "I1", "generated_at": "2026-03-01T11:00:00.5Z"}, "results": [
            {"adapter_response": {"run_id": "R1"}, "relation_name": "`silt`.`main`.`a`"},
            {"adapter_response": {}, "relation_name": null}]}"""
    )
    found = read_results(path)
    assert found == PreviousResults(
        "I1", datetime(2026, 3, 1, 11, 0, 0, 500000, tzinfo=timezone.utc), ("R1",), ("`silt`.`main`.`a`",)
    )


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["run", "-s", "a b"], "dbt run -s 'a b'"),
        (["run", "--vars", "{x: 1}", "--threads", "2"], "dbt run --threads 2"),
        (["run", "--vars={x: 1}"], "dbt run"),
        (["-m", "pytest", "tests"], "dbt run"),
    ],
)
def test_the_line_of_a_command_leaves_its_variables_out(arguments: list[str], line: str) -> None:
    assert command_line("run", arguments) == line
