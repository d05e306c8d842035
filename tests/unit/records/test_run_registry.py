"""The registry of a project's runs: entries are added when runs start, report live runs, and are updated at the end."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shlex
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import date
from multiprocessing import get_context
from pathlib import Path

import pytest
import yaml

from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError, NotWrittenError, StorageError
from dbt.adapters.silt.records.run_registry import REGISTRY_FILE, RunEntry, RunRegistry, last_build, variables_text


def entry(invocation: str, run: str) -> RunEntry:
    return RunEntry(invocation, run, "dbt run", "/shop", "2026-03-01T12:00:00+00:00")


def test_a_registry_without_a_file_is_empty(tmp_path: Path) -> None:
    assert RunRegistry(tmp_path / "target").entries() == ()


def test_entries_are_kept_with_their_end(tmp_path: Path) -> None:
    registry = RunRegistry(tmp_path / "target")
    registry.enter(entry("I1", "R1"))
    registry.enter(entry("I2", "R2"))
    registry.end("I1", finished=True)
    registry.end("I2", finished=False)
    states = [(each.run_id, each.finished, each.running) for each in registry.entries()]
    assert states == [("R1", True, False), ("R2", False, False)]
    assert registry.find("I2") == registry.entries()[1]
    assert registry.find("I3") is None


def test_a_command_that_ended_before_it_began_stays_one(tmp_path: Path) -> None:
    registry = RunRegistry(tmp_path / "target")
    registry.enter(replace(entry("I1", "R1"), began=False))
    registry.enter(entry("I2", "R2"))
    registry.end("I1", finished=True)
    registry.end("I2", finished=True, began=False)
    assert [each.began for each in registry.entries()] == [False, False]


def test_an_invocation_is_entered_once(tmp_path: Path) -> None:
    registry = RunRegistry(tmp_path)
    registry.enter(entry("I1", "R1"))
    registry.enter(entry("I1", "R1"))
    assert len(registry.entries()) == 1


def test_the_oldest_runs_are_deleted(tmp_path: Path) -> None:
    registry = RunRegistry(tmp_path)
    for number in range(205):
        registry.enter(entry(f"I{number}", f"R{number}"))
        registry.end(f"I{number}", finished=True)
    assert [registry.entries()[0].run_id, registry.entries()[-1].run_id] == ["R5", "R204"]


def test_a_full_disk_leaves_no_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = RunRegistry(tmp_path)
    registry.enter(entry("I1", "R1"))

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(NotWrittenError):
        registry.enter(entry("I2", "R2"))
    monkeypatch.undo()
    assert list(tmp_path.glob("*.tmp")) == []
    assert [each.run_id for each in registry.entries()] == ["R1"]


def test_other_processes_see_the_nodes_of_a_command_while_it_runs(tmp_path: Path) -> None:
    registry = RunRegistry(tmp_path)
    registry.enter(replace(entry("I1", "R1"), selected=frozenset(["model.shop.orders", "model.shop.größe"])))
    registry.enter(entry("I2", "R2"))
    first, second = RunRegistry(tmp_path).entries()
    assert first.running and first.selected == {"model.shop.orders", "model.shop.größe"}  # type: ignore[comparison-overlap]
    assert second.running and second.selected is None
    registry.end("I1", finished=True)
    assert RunRegistry(tmp_path).entries()[0].selected is None
    assert "selected" not in (tmp_path / "silt_runs.json").read_text()


def test_a_run_counts_as_running_if_its_lock_cannot_be_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = RunRegistry(tmp_path)
    registry.enter(entry("I1", "R1"))

    def unsupported(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    assert [each.running for each in registry.entries()] == [True]


def test_a_damaged_file_raises_an_error_instead_of_returning_no_entries(tmp_path: Path) -> None:
    (tmp_path / REGISTRY_FILE).write_text('{"runs": [')
    with pytest.raises(InvalidSettingError, match=REGISTRY_FILE):
        RunRegistry(tmp_path).entries()
    with pytest.raises(InvalidSettingError, match="Delete it"):
        RunRegistry(tmp_path).enter(entry("I1", "R1"))


def test_an_unreadable_file_is_named_in_the_error(tmp_path: Path) -> None:
    (tmp_path / REGISTRY_FILE).mkdir()
    with pytest.raises(StorageError, match=f"{REGISTRY_FILE} cannot be read: Is a directory"):
        RunRegistry(tmp_path).entries()


def test_fields_of_a_later_version_are_ignored(tmp_path: Path) -> None:
    registry = RunRegistry(tmp_path)
    registry.enter(entry("I1", "R1"))
    registry.end("I1", finished=True)
    document = json.loads((tmp_path / REGISTRY_FILE).read_text())
    document["runs"][0]["colour"] = "green"
    (tmp_path / REGISTRY_FILE).write_text(json.dumps(document))
    assert registry.entries()[0].run_id == "R1"


def test_a_folder_that_cannot_be_written_raises_an_error_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("a file")
    with pytest.raises(NotWrittenError, match="--target-path"):
        RunRegistry(tmp_path / "target").enter(entry("I1", "R1"))


def test_no_entry_of_two_processes_is_lost(tmp_path: Path) -> None:
    processes = [get_context("fork").Process(target=_enter_some, args=(tmp_path, name)) for name in "AB"]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert len(RunRegistry(tmp_path).entries()) == 40


def _enter_some(folder: Path, name: str) -> None:
    for number in range(20):
        RunRegistry(folder).enter(entry(f"{name}{number}", "R"))


_ENTER_AND_WAIT = """
import subprocess, sys, time
from pathlib import Path
from dbt.adapters.silt.records.run_registry import RunEntry, RunRegistry
registry = RunRegistry(Path(sys.argv[1]))
registry.enter(RunEntry("I1", "R1", "dbt run", "/shop", "2026-03-01T12:00:00+00:00"))
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""


def test_a_run_counts_as_running_exactly_as_long_as_its_process_lives(tmp_path: Path) -> None:
    registry = RunRegistry(tmp_path)
    with subprocess.Popen([sys.executable, "-c", _ENTER_AND_WAIT, str(tmp_path)], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        child = int(other.stdout.readline())
        registry.enter(entry("I2", "R2"))
        assert [each.running for each in registry.entries()] == [True, True]
        assert registry.entries()[0].process == other.pid
        other.send_signal(signal.SIGKILL)
        other.wait()
    os.kill(child, 0)  # like Spark's JVM, it outlives its parent process, and does not count
    assert [each.running for each in registry.entries()] == [False, True]
    os.kill(child, signal.SIGKILL)
    # In a container the next dbt may have the same process id on the same host; this is that dbt.
    document = json.loads((tmp_path / REGISTRY_FILE).read_text())
    document["runs"][0]["process"] = os.getpid()
    (tmp_path / REGISTRY_FILE).write_text(json.dumps(document))
    assert [each.running for each in registry.entries()] == [False, True]
    registry.end("I2", finished=True)
    registry.enter(entry("I3", "R3"))
    assert [path.stem for path in (tmp_path / "silt_runs").iterdir()] == ["I3"], "locks of the dead are swept"
    registry.end("I3", finished=True)


def test_only_the_subcommand_decides_whether_a_command_is_a_build() -> None:
    first = replace(entry("I1", "R"), command="dbt run --select test run-operation", which="run")
    tested = replace(entry("I2", "R"), command="dbt --quiet test --select build", which="test")
    undone = replace(entry("I3", "R"), command="dbt run-operation silt_rollback", which="run-operation")
    assert last_build([first, tested, undone], "R") == first
    assert last_build([tested, undone], "R") is None


class TestContinuingCommand:
    def test_keeps_the_variables_with_their_types(self) -> None:
        killed = replace(entry("I2", "R2"), variables=variables_text({"day": date(2026, 1, 1), "name": "it's"}))
        *command, value = shlex.split(killed.continuing_command("/shop"))
        assert command == ["dbt", "run", "--vars"]
        assert yaml.safe_load(value) == {"day": date(2026, 1, 1), "name": "it's", "silt_run_id": "R2"}

    def test_changes_to_the_folder_in_which_the_run_was_started(self) -> None:
        killed = replace(entry("I2", "R2"), directory="/my shop")
        assert killed.continuing_command("/") == "cd '/my shop' && dbt run --vars '{silt_run_id: R2}'"

    @pytest.mark.parametrize("given", [{"text": "a\nb: c # d 夜"}, {"n": {"list": [1, 2.5, None, True]}}, {}])
    def test_writes_any_variables_as_one_line_with_the_same_values(self, given: dict[str, object]) -> None:
        text = variables_text(given)
        assert "\n" not in text
        assert yaml.safe_load(text) == given

    def test_writes_values_of_types_that_yaml_lacks_as_strings(self) -> None:
        assert yaml.safe_load(variables_text({"where": Path("/data")})) == {"where": "/data"}
