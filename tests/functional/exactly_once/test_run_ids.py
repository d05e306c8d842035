"""The run id of a dbt command, where it is shown, and how a stopped run is resumed."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

from dbt.adapters.silt.records.run_registry import RunEntry, RunRegistry

FAILING_HOOK = "{% if var('fail', false) %}select raise_error('boom'){% else %}select 1{% endif %}"
APPENDED = "{{ config(materialized='incremental', post_hook=\"" + FAILING_HOOK + '") }}\nselect id from range(4)'
SNAPSHOT = (
    "{% snapshot history %}\n{{ config(target_schema=schema, unique_key='id', strategy='check', check_cols='all', "
    'post_hook="' + FAILING_HOOK + '") }}\n'
    "select id, uuid() as value from range(3)\n{% endsnapshot %}"
)
OPERATIONS = """
{% macro add_row() %}
  {% do run_query("create table if not exists " ~ target.schema ~ ".audit (what string)") %}
  {% if var('fail', false) %}{% do run_query("select raise_error('boom')") %}{% endif %}
  {% do run_query("insert into " ~ target.schema ~ ".audit values ('added')") %}
{% endmacro %}

{% macro look() %}
  {% do run_query("show tables in " ~ target.schema) %}
  {% if var('fail', false) %}{% do exceptions.raise_compiler_error('nothing is right') %}{% endif %}
{% endmacro %}
"""
FAIL, CALM = ("--vars", "{fail: true}"), ("--vars", "{}")


def target_folder(project: Any) -> Path:
    return Path(project.project_root) / "target"


def runs(project: Any) -> list[dict[str, Any]]:
    path = target_folder(project) / "silt_runs.json"
    return json.loads(path.read_text())["runs"] if path.exists() else []


def count(project: Any, table: str) -> int:
    return int(project.run_sql(f"select count(*) from {project.test_schema}.{table}", fetch="one")[0])


def shown(output: str) -> list[str]:
    """Returns the lines that name the run, each before the first node."""
    first = output.find(" START ")
    return re.findall(r"Run id (.*)$", output[: first if first >= 0 else len(output)], re.MULTILINE)


@pytest.fixture(scope="class")
def orchestrator() -> Iterator[pytest.MonkeyPatch]:
    """Sets the environment variables that the profile reads."""
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="class")
def dbt_profile_target(silt_target: dict[str, Any], orchestrator: pytest.MonkeyPatch) -> dict[str, Any]:
    fields = {"run_id": "{{ env_var('ORCHESTRATOR_RUN_ID', '') }}", "resume": "{{ env_var('RESUME', '') }}"}
    return {**silt_target, **fields}


class Project:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"appended.sql": APPENDED, "other.sql": "{{ config(materialized='table') }} select 1 as id"}

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"operations.sql": OPERATIONS}

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"colours.csv": "id,name\n1,red\n2,green\n"}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"history.sql": SNAPSHOT}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"seeds": {"post-hook": FAILING_HOOK}}


class TestOrderOfIds(Project):
    def test_a_retried_run_keeps_its_id_despite_changed_variables_profile_and_target_folder(
        self, project: Any, orchestrator: pytest.MonkeyPatch
    ) -> None:
        orchestrator.setenv("ORCHESTRATOR_RUN_ID", "day 1/äö")
        _, output = run_dbt_and_capture(["build", *FAIL], expect_pass=False)
        assert shown(output) == ["day 1/äö (the profile's run_id)"]
        state = target_folder(project).rename(Path(project.project_root) / "yesterday")
        self._is_found_beside_the_state(project, orchestrator)
        (state / "silt_runs.json").unlink()
        self._is_found_in_the_results(project)
        self._is_found_in_the_commits(project, state)
        assert (count(project, "appended"), count(project, "history")) == (4, 3)
        self._is_refused_where_nothing_knows_it(project, state)

    def _is_found_beside_the_state(self, project: Any, orchestrator: pytest.MonkeyPatch) -> None:
        orchestrator.setenv("ORCHESTRATOR_RUN_ID", "day 2")
        _, output = run_dbt_and_capture(["retry", "--state", "yesterday"], expect_pass=False)
        assert shown(output) == ["day 1/äö (the run that is retried; the profile's run_id day 2 is not used)"]
        _, output = run_dbt_and_capture(["retry", *CALM])
        assert shown(output)[0].startswith("day 1/äö (the run that is retried"), "of a retry"
        assert output.count("skipped, nothing written: run day 1/äö") == 3, "a seed, a snapshot and a model"
        assert [each["finished"] for each in runs(project)] == [True, True]

    def _is_found_in_the_results(self, project: Any) -> None:
        """One node of the run succeeded, and its adapter response contains the id."""
        shutil.rmtree(target_folder(project))
        _, output = run_dbt_and_capture(["retry", "--state", "yesterday", *CALM])
        assert shown(output)[0].startswith("day 1/äö (the run that is retried")

    def _is_found_in_the_commits(self, project: Any, state: Path) -> None:
        shutil.rmtree(target_folder(project))
        self._without_responses(state)
        _, output = run_dbt_and_capture(["retry", "--state", "yesterday", *CALM])
        assert shown(output)[0].startswith("day 1/äö (the run that is retried")

    def _is_refused_where_nothing_knows_it(self, project: Any, state: Path) -> None:
        shutil.rmtree(target_folder(project))
        document = json.loads((state / "run_results.json").read_text())
        document["metadata"]["invocation_id"] = "never-seen"
        (state / "run_results.json").write_text(json.dumps(document))
        with pytest.raises(BaseException, match="run id of invocation never-seen") as refusal:
            run_dbt(["retry", "--state", "yesterday"], expect_pass=False)
        assert "retry --state yesterday" in str(refusal.value)
        assert "--vars '{fail: true, silt_run_id: day 2}'`" in str(refusal.value)
        assert runs(project) == []

    def _without_responses(self, state: Path) -> None:
        document = json.loads((state / "run_results.json").read_text())
        for result in document["results"]:
            result["adapter_response"] = {}
        (state / "run_results.json").write_text(json.dumps(document))


class TestEveryCommand(Project):
    def test_every_command_shows_the_run_id_first_and_recognises_finished_work_without_a_target_folder(
        self, project: Any, orchestrator: pytest.MonkeyPatch
    ) -> None:
        orchestrator.setenv("ORCHESTRATOR_RUN_ID", "20260301")  # a number, as YAML parses it
        for command in ("seed", "snapshot", "run"):
            _, output = run_dbt_and_capture([command])
            assert shown(output) == ["20260301 (the profile's run_id)"]
            shutil.rmtree(target_folder(project))  # simulates a new container for the next command
        results, output = run_dbt_and_capture(["build"])
        assert shown(output) == ["20260301 (the profile's run_id)"]
        assert [result.adapter_response["skipped"] for result in results] == [True] * 4

    def test_commands_without_a_run_id_are_separate_runs_also_in_one_process_and_after_an_error(
        self, project: Any, orchestrator: pytest.MonkeyPatch
    ) -> None:
        orchestrator.setenv("ORCHESTRATOR_RUN_ID", "")
        for _ in range(2):
            run_dbt(["run", "--select", "appended"])
        with pytest.raises(BaseException, match="must be a string or a number, not"):
            run_dbt(["run", "--select", "appended", "--vars", "{silt_run_id: {day: 1}}"])
        with pytest.raises(BaseException, match="501 characters"):
            run_dbt(["run", "--select", "appended", "--vars", f"{{silt_run_id: {'x' * 501}}}"])
        orchestrator.setenv("RESUME", "forever")
        with pytest.raises(BaseException, match="`resume` must be a length of time such as `2 hours`"):
            run_dbt(["run", "--select", "appended"])
        orchestrator.setenv("RESUME", "2 hours")
        _, output = run_dbt_and_capture(["run", "--select", "appended"])
        assert "Continuing" not in output, "what came to its end is not continued"
        assert "in progress" not in output and "The last run" not in output, "and nothing is said of it"
        assert count(project, "appended") == 4 + 3 * 4
        last = runs(project)[-3:]
        assert [each["run_id"] for each in last] == [each["invocation_id"] for each in last]
        assert shown(output) == [f"{last[-1]['invocation_id']} (dbt's invocation id)"]

    def test_an_operation_is_a_run_once_it_changes_something(
        self, project: Any, orchestrator: pytest.MonkeyPatch
    ) -> None:
        before = runs(project)
        _, output = run_dbt_and_capture(["run-operation", "look", *FAIL], expect_pass=False)
        assert shown(output) == []
        _, output = run_dbt_and_capture(["retry"], expect_pass=False)
        assert "nothing is right" in output, "looking again is not refused"
        assert runs(project) == before
        _, output = run_dbt_and_capture(["run-operation", "add_row", *FAIL], expect_pass=False)
        operation = runs(project)[-1]
        assert shown(output) == [f"{operation['invocation_id']} (dbt's invocation id)"]
        _, output = run_dbt_and_capture(["retry", *CALM])
        assert shown(output) == [f"{operation['invocation_id']} (the run that is retried)"]
        assert count(project, "audit") == 1

    def test_a_new_run_id_in_the_profile_causes_no_full_parse(
        self, project: Any, orchestrator: pytest.MonkeyPatch
    ) -> None:
        for run_id in ("R1", "R2"):
            orchestrator.setenv("ORCHESTRATOR_RUN_ID", run_id)
            events: list[Any] = []
            run_dbt(["run", "--select", "other"], callbacks=[events.append])
            messages = {event.info.name: event.info.msg for event in events}
        assert "UnableToPartialParse" not in messages
        assert messages["PartialParsingEnabled"] == (
            "Partial parsing enabled: 0 files deleted, 0 files added, 0 files changed."
        )
        assert runs(project)[-1]["run_id"] == "R2"


WAITING = """
import os, time

def model(dbt, session):
    dbt.config(materialized="incremental")
    dbt.ref("appended")
    while os.path.exists("{hold}"):
        open("{hold}.reached", "w").close()
        time.sleep(0.02)
    return session.range(2)
"""


class TestFirstRunKilled:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"appended.sql": APPENDED}

    def test_a_retry_without_any_results_prints_the_command_that_resumes_the_run(
        self, project: Any, tmp_path: Path
    ) -> None:
        place = ["--target-path", str(tmp_path)]
        registry = RunRegistry(tmp_path)
        registry.enter(RunEntry("I1", "R1", "dbt run --threads 2", str(Path.cwd()), "2026-01-01T00:00:00+00:00"))
        assert "Run R1" in self._refused(place) and "is still running" in self._refused(place)
        registry.end("I1", finished=False)
        [command] = re.findall(r"Continue that run with `([^`]*)`", self._refused(place))
        assert shlex.split(command) == ["dbt", "run", "--threads", "2", "--vars", "{silt_run_id: R1}"]
        run_dbt([*shlex.split(command)[1:], *place])
        assert run_dbt(["retry", *place]).results == []

    def test_a_retry_without_an_earlier_run_is_refused_with_dbts_message(self, project: Any, tmp_path: Path) -> None:
        refusal = self._refused(["--target-path", str(tmp_path)])
        assert "Could not find previous run" in refusal and "Run R1" not in refusal

    def _refused(self, place: list[str]) -> str:
        events: list[Any] = []
        with pytest.raises(BaseException, match="Could not find previous run"):
            run_dbt(["retry", *place], callbacks=[events.append])
        return "\n".join(event.info.msg for event in events)


class StoppedRuns:
    """A dbt process that waits in its second model while a file exists."""

    @pytest.fixture(scope="class")
    def hold(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        return tmp_path_factory.mktemp("hold") / "hold"

    @pytest.fixture(scope="class")
    def models(self, hold: Path) -> dict[str, str]:
        said = "\n{# {{ var('note', '') }} {{ var('day', modules.datetime.date(2026, 1, 1)).year }} #}"
        return {"appended.sql": APPENDED + said, "waiting.py": WAITING.format(hold=hold)}

    @pytest.fixture(scope="class")
    def selected(self) -> list[str]:
        return ["run", "--select", "appended waiting", "--target", "default"]

    def _start(self, project: Any, arguments: list[str], hold: Path, folder: Path) -> subprocess.Popen[bytes]:
        """Starts dbt with another working directory, in its own process group; returns when its second model waits."""
        hold.touch()
        reached = Path(f"{hold}.reached")
        reached.unlink(missing_ok=True)
        with (folder / "output.log").open("wb") as log:
            process = subprocess.Popen(
                self._line(project, arguments), cwd=folder, stdout=log, stderr=log, start_new_session=True
            )
        self._wait(process, reached.exists)
        return process

    def _line(self, project: Any, arguments: list[str]) -> list[str]:
        dbt = str(Path(sys.executable).with_name("dbt"))
        return [
            dbt,
            *arguments,
            "--project-dir",
            str(project.project_root),
            "--profiles-dir",
            str(project.profiles_dir),
        ]

    def _wait(self, process: subprocess.Popen[bytes], until: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 300
        while not until():
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.05)


class TestKilledRuns(StoppedRuns):
    @pytest.mark.long
    def test_a_killed_run_is_resumed_by_the_command_that_retry_prints(
        self, project: Any, hold: Path, selected: list[str], tmp_path: Path
    ) -> None:
        run_dbt([*selected])
        variables = ["--vars", '{day: 2026-01-02, note: "it\'s `late`"}'.replace("`", "")]
        process = self._start(project, [*selected, *variables], hold, tmp_path)
        with pytest.raises(BaseException, match="is still running"):
            run_dbt(["retry"])
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=60)
        hold.unlink()

        with pytest.raises(BaseException, match="was killed or broken off") as refusal:
            run_dbt(["retry"])
        killed = runs(project)[-1]
        [command] = re.findall(r"Continue that run with `([^`]*)`", str(refusal.value))
        assert command.startswith(f"cd {tmp_path} && ") and "--target default" in command
        pasted = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=300, check=False)
        assert pasted.returncode == 0, pasted.stdout
        assert shown(pasted.stdout) == [f"{killed['run_id']} (the variable silt_run_id)"]
        assert f"skipped, nothing written: run {killed['run_id']}" in pasted.stdout
        assert run_dbt(["retry"]).results == [], "now the last run has left its results"
        assert (count(project, "appended"), count(project, "waiting")) == (8, 4)


class TestKilledRunOnATerminal(StoppedRuns):
    @pytest.mark.long
    def test_repeating_the_command_prints_how_to_resume_in_a_pipe_and_resumes_the_run_on_a_terminal(
        self, project: Any, hold: Path, selected: list[str], tmp_path: Path
    ) -> None:
        self._start_and_kill(project, selected, hold, tmp_path)
        first = runs(project)[-1]
        piped = subprocess.run(self._line(project, selected), cwd=tmp_path, capture_output=True, text=True, check=True)
        assert f"silt_run_id: {first['run_id']}" in piped.stdout[: piped.stdout.index("Run id ")]
        assert count(project, "appended") == 8, "it was a new run, and said before that this would double"
        self._start_and_kill(project, selected, hold, tmp_path)
        killed = runs(project)[-1]
        shown_lines = self._on_a_terminal(self._line(project, selected), tmp_path)
        assert "Continuing `" in shown_lines[: shown_lines.index("Run id ")]
        assert shown(shown_lines.replace("\r", "")) == [f"{killed['run_id']} (a run that did not finish)"]
        assert (count(project, "appended"), count(project, "waiting")) == (12, 4)

    def _start_and_kill(self, project: Any, selected: list[str], hold: Path, folder: Path) -> None:
        process = self._start(project, selected, hold, folder)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=60)
        hold.unlink()

    def _on_a_terminal(self, line: list[str], folder: Path) -> str:
        """Returns the output of a command that is typed on a terminal."""
        screen, device = os.openpty()
        process = subprocess.Popen(line, cwd=folder, stdin=device, stdout=device, stderr=device)
        os.close(device)
        seen = b""
        with contextlib.suppress(OSError), open(screen, "rb", buffering=0) as output:
            while part := output.read(4096):
                seen += part
        assert process.wait(timeout=60) == 0, seen.decode()
        return seen.decode()


class TestInterruptedRuns(StoppedRuns):
    def test_a_run_ended_by_ctrl_c_is_resumed_by_a_retry(
        self, project: Any, hold: Path, selected: list[str], tmp_path: Path
    ) -> None:
        process = self._start(project, selected, hold, tmp_path)
        os.killpg(process.pid, signal.SIGINT)
        self._wait(process, lambda: "CANCEL" in (tmp_path / "output.log").read_text())
        hold.unlink()
        assert process.wait(timeout=120) != 0
        stopped = runs(project)[-1]
        assert not stopped["finished"]
        _, output = run_dbt_and_capture(["retry"])
        assert shown(output) == [f"{stopped['run_id']} (the run that is retried)"]
        assert (count(project, "appended"), count(project, "waiting")) == (4, 2), "each once"
        assert run_dbt(["retry"]).results == []
