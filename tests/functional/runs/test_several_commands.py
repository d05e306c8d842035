"""Several commands of one run id are published together, by the last of them, if nothing of them has failed."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dbt.cli.main import dbtRunner
from dbt.tests.util import run_dbt, run_dbt_and_capture

from dbt.adapters.silt.cli.main import main
from dbt.adapters.silt.engine.catalog.branches.command_documents import CommandDocuments
from dbt.adapters.silt.engine.catalog.branches.run_branches import RunBranches
from dbt.adapters.silt.engine.catalog.branches.run_commands import CommandResults, RunCommand
from dbt.adapters.silt.engine.catalog.open_databases import open_databases
from dbt.adapters.silt.engine.kernel.storage.settings import Storages
from tests.files import write_files
from tests.functional.runs.test_publishing import HEAD, Publishing, rows, shown, silt, warehouse, with_id

MODELS = {
    "a.sql": HEAD + "select {{ var('value', 1) }} as k",
    "b.sql": HEAD + "select 2 as y",
    "c.sql": HEAD + "select k from {{ ref('a') }}",
    "schema.yml": "models: [{name: a, columns: [{name: k, data_tests: [not_null]}]}]",
}
NULL = "cast(null as int)"


class SeveralCommands(Publishing):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return MODELS

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {}


def branches(project: Any) -> RunBranches:
    catalog = open_databases({project.database: warehouse(project)}, Storages()).catalog
    return catalog.run_branches(project.database)


def other_command(project: Any, run_id: str, *selected: str) -> CommandDocuments:
    """Another command that works on the branch of a run, as its process records it."""
    runs = branches(project)
    documents = runs.commands(runs.find(run_id))
    documents.begin(RunCommand(f"other-{run_id}", "dbt build --select other", "host", 7, selected=frozenset(selected)))
    return documents


def run_with(project: Any, meanwhile: Callable[[], object], *options: str) -> Any:
    """Builds, and calls `meanwhile` when the first node is finished."""
    left = [meanwhile]

    def on_event(event: Any) -> None:
        if event.info.name == "NodeFinished" and left:
            left.pop()()

    place = ["--project-dir", str(project.project_root), "--profiles-dir", str(project.profiles_dir)]
    return dbtRunner(callbacks=[on_event]).invoke(["build", *options, *place])


def runs_json(project: Any, capsys: pytest.CaptureFixture[str], *options: str) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert silt(project, "runs", "--json", *options) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["runs"]
    return found


class TestOneRunInSeveralCommands(SeveralCommands):
    def test_another_command_does_not_publish_what_failed_its_test(self, project: Any) -> None:
        _, output = run_dbt_and_capture(["build", "-s", "a", *with_id("day1", value=NULL)], expect_pass=False)
        assert "Held: 1 test failed, so no change of the run day1 is visible" in output
        _, output = run_dbt_and_capture(["build", "-s", "b", *with_id("day1")])
        assert "Held: 1 test failed, so no change of the run day1 is visible" in output
        assert "to be corrected in another command of the run: " in output
        assert "build -s a" in output and "failed: not_null_a_k" in output
        assert "silt publish day1" in output and shown(project) == {}

    def test_the_corrected_command_publishes_the_work_of_both(self, project: Any) -> None:
        _, output = run_dbt_and_capture(["build", "-s", "a", *with_id("day1", value=3)])
        assert "Published at one moment" in output
        assert shown(project) == {"a": 0, "b": 0} and rows(project, "a") == [(3,)]

    def test_a_node_that_was_skipped_runs_with_the_corrected_node(self, project: Any) -> None:
        _, output = run_dbt_and_capture(["build", *with_id("day2", value=NULL)], expect_pass=False)
        _, output = run_dbt_and_capture(["build", "-s", "a", *with_id("day2", value=5)])
        assert "Published at one moment" in output
        assert set(shown(project)) == {"a", "b", "c"} and rows(project, "c") == [(5,)]

    def test_a_test_that_the_project_no_longer_has_holds_nothing(self, project: Any) -> None:
        run_dbt(["build", "-s", "a", *with_id("day3", value=NULL)], expect_pass=False)
        write_files(Path(project.project_root, "models"), {"schema.yml": "models: [{name: a}]"})
        try:
            _, output = run_dbt_and_capture(["build", "-s", "b", *with_id("day3")])
        finally:
            write_files(Path(project.project_root, "models"), {"schema.yml": MODELS["schema.yml"]})
        assert "Published at one moment" in output and rows(project, "a") == [(None,)]


class TestCommandsAtTheSameTime(SeveralCommands):
    def test_the_last_command_that_ends_publishes(self, project: Any, capsys: pytest.CaptureFixture[str]) -> None:
        others: list[CommandDocuments] = []
        result = run_with(
            project, lambda: others.append(other_command(project, "day1", "model.test.b")), "-s", "a", *with_id("day1")
        )
        output = capsys.readouterr().out
        assert result.success and shown(project) == {}
        assert "Held: `dbt build --select other` (process 7 of host) is at work" in output
        assert "the last command of the run publishes it" in output
        for command in ("publish", "drop-run"):
            assert silt(project, command, "day1") == 2
            assert "SILT_RUN_IN_PROGRESS" in (error := capsys.readouterr().err) and "process 7 of host" in error
        assert runs_json(project, capsys)[0]["result"] == "running"
        others[0].end(CommandResults(passed=frozenset(["model.test.b"])))
        run_dbt(["build", "-s", "a", *with_id("day1")])
        assert set(shown(project)) == {"a"}

    def test_a_failure_of_the_other_command_holds_the_run(self, project: Any) -> None:
        before = shown(project)

        def fail() -> None:
            other_command(project, "day2", "test.test.t.1").end(CommandResults(failed=frozenset(["test.test.t.1"])))

        assert run_with(project, fail, "-s", "b", *with_id("day2")).success
        assert shown(project) == before

    def test_a_run_that_another_process_publishes_is_reported_as_it_is(self, project: Any) -> None:
        def publish() -> None:
            runs = branches(project)
            run = runs.find("day3")
            runs.publish(run, runs.existing(run))

        result = run_with(project, publish, "-s", "a", "b", "--threads", "1", *with_id("day3"))
        assert not result.success
        assert "another process has published the run day3 while this command worked on it" in str(result.exception)
        assert "not a Delta table" not in str(result.exception)
        run_dbt(["build", "-s", "a", "b", *with_id("day3")])
        assert {"a", "b"} <= set(shown(project))

    def test_a_run_that_another_process_drops_is_reported_as_it_is(self, project: Any) -> None:
        before = shown(project)

        def drop() -> None:
            runs = branches(project)
            run = runs.find("day4")
            runs.drop(run, runs.existing(run, to_drop=True))

        result = run_with(project, drop, "-s", "a", "b", "--threads", "1", *with_id("day4"))
        assert "another process has dropped the run day4" in str(result.exception)
        assert shown(project) == before


class TestTwoProcesses(SeveralCommands):
    @pytest.fixture(scope="class")
    def tests(self) -> dict[str, str]:
        return {"fails.sql": "select * from {{ ref('a') }} where k = {{ var('bad', 1) }}"}

    def test_the_first_that_ends_publishes_nothing_of_the_other(self, project: Any) -> None:
        ran: list[subprocess.CompletedProcess[str]] = []
        place = ["--project-dir", str(project.project_root), "--profiles-dir", str(project.profiles_dir)]

        def build_b() -> None:
            options = ["build", "-s", "b", "--target-path", "target2", *with_id("day1"), *place]
            program = [str(Path(sys.executable).with_name("dbt")), *options]
            ran.append(subprocess.run(program, capture_output=True, text=True, check=False))

        assert not run_with(project, build_b, "--exclude", "b", *with_id("day1")).success
        assert ran[0].returncode == 0, ran[0].stdout
        assert "is at work" in ran[0].stdout and shown(project) == {}
        assert main(["publish", "day1", "--if-passed", *place]) == 1
        run_dbt(["build", "--exclude", "b", *with_id("day1", bad=2)])
        assert set(shown(project)) == {"a", "b", "c"}


class TestACommandThatEndsOutsideOfItsNodes(SeveralCommands):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        raising = (
            "{% if var('stale', false) and execute %}{{ exceptions.raise_compiler_error('not fresh') }}{% endif %}"
        )
        return {"on-run-end": raising}

    def test_it_is_held_with_its_lines_and_has_succeeded_when_it_is_published(
        self, project: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        place = ["--project-dir", str(project.project_root), "--profiles-dir", str(project.profiles_dir)]
        assert not dbtRunner().invoke(["build", "-s", "b", *with_id("day1", stale=True), *place]).success
        output = capsys.readouterr().out
        assert "Held: the command ended with an error" in output and "not fresh" in output
        assert "silt sql --run day1" in output and "silt publish day1" in output and shown(project) == {}
        assert runs_json(project, capsys)[0]["result"] == "held"
        assert silt(project, "publish", "day1", "--if-passed") == 1
        assert silt(project, "publish", "day1") == 0
        assert shown(project) == {"b": 0}
        assert runs_json(project, capsys)[0]["result"] == "succeeded"
        assert silt(project, "runs", "--last", "--check") == 0

    def test_a_command_without_the_error_publishes_it(self, project: Any, capsys: pytest.CaptureFixture[str]) -> None:
        place = ["--project-dir", str(project.project_root), "--profiles-dir", str(project.profiles_dir)]
        assert not dbtRunner().invoke(["build", "-s", "a", *with_id("day2", stale=True), *place]).success
        run_dbt(["build", "-s", "a", *with_id("day2")])
        assert "a" in shown(project)
        assert runs_json(project, capsys)[0]["result"] == "succeeded"

    def test_a_corrected_test_with_other_variables_is_no_failure(
        self, project: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        run_dbt(["build", "-s", "a", *with_id("day3", value=NULL)], expect_pass=False)
        [first] = runs_json(project, capsys, "--last")
        assert (first["result"], first["failed"]) == ("held", ["not_null_a_k"])
        run_dbt(["build", "-s", "a", *with_id("day3", value=7)])
        [last] = runs_json(project, capsys, "--last", "--check")
        assert (last["result"], last["failed"], last["counts"]["error"]) == ("succeeded", [], 0)


class TestRandomCommands(SeveralCommands):
    def test_nothing_is_visible_while_a_failure_or_an_unfinished_node_stands(self, project: Any) -> None:
        chance = random.Random(7)
        tested = {"a": ["a", "not_null_a_k"], "b": ["b"], "c": ["c"]}
        for day in range(2):
            before, last = shown(project), dict[str, str]()
            while not last or set(last.values()) != {"success"}:
                chosen = [each for each in tested if chance.random() < 0.6] or ["a"]
                fails = chance.random() < 0.5
                results = run(project, f"day{day}", chosen, NULL if fails else day + 10)
                last.update({name: how for name, how in results.items() if how != "skipped" or name not in last})
                if set(last.values()) != {"success"}:
                    assert shown(project) == before, (chosen, fails, last)
            built = {name for name in last if name in tested}
            assert {name for name, version in shown(project).items() if before.get(name) != version} <= built
            assert built <= set(shown(project)), "the last command has published the run"


def run(project: Any, run_id: str, chosen: list[str], value: object) -> dict[str, str]:
    """Builds nodes; returns the status of each node and test."""
    place = ["--project-dir", str(project.project_root), "--profiles-dir", str(project.profiles_dir)]
    given = with_id(run_id, value=value, silt_publish="after_tests")
    result = dbtRunner().invoke(["build", "-s", *chosen, *given, *place]).result
    assert result is not None and not isinstance(result, bool)
    outcomes = {each.node.name: str(each.status) for each in result}  # type: ignore[union-attr]
    return {name: "success" if how in ("success", "pass") else how for name, how in outcomes.items()}
