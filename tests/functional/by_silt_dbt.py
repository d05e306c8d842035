"""Runs the commands of dbt's suite as `silt dbt`, instead of its `dbtRunner`.

The result of a command is taken from its process: the exit code, the output, and its artifacts in `target`. The nodes
of results are read from the manifest that it stored. Events for callbacks, and the rows of `show`, are read from a log
that the command writes. Patches in the test's own process do not affect it: tests that need them are marked
`own_process`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import agate
import pytest
from dbt.adapters.events import adapter_types_pb2
from dbt.adapters.factory import get_adapter_by_type
from dbt.artifacts.schemas.catalog import CatalogArtifact
from dbt.artifacts.schemas.run import RunExecutionResult, RunResult, RunResultOutput, RunResultsArtifact, RunStatus  # type: ignore[attr-defined]
from dbt.cli.main import dbtRunnerResult
from dbt.contracts.graph.manifest import Manifest
from dbt.events import core_types_pb2
from dbt.tests import util
from dbt_common.events import types_pb2
from dbt_common.events.base_types import EventMsg
from dbt_common.events.functions import get_capture_stream
from dbt_common.exceptions import DbtRuntimeError
from google.protobuf import json_format

from dbt.adapters.silt.command_server import control

_KINDS: Final = (adapter_types_pb2, core_types_pb2, types_pb2)
_SILT = str(Path(sys.executable).with_name("silt"))
_LONGEST_SECONDS = 300
_LOG_LINE = re.compile(r"\d\d:\d\d:\d\d ")
_NOTHING_RAN = 2
"""dbt's exit code for a command that failed before its nodes."""


def install(patch: pytest.MonkeyPatch) -> None:
    """Makes `run_dbt` use it."""
    patch.setattr(util, "dbtRunner", SiltDbt)


def stop() -> None:
    """Stops the command servers."""
    control.stop()


class SiltDbt:
    """The part of `dbtRunner` that `run_dbt` needs."""

    def __init__(
        self, manifest: Manifest | None = None, callbacks: list[Callable[[EventMsg], None]] | None = None
    ) -> None:
        assert manifest is None, "it would be in another process"
        self._callbacks = callbacks or []

    def invoke(self, arguments: list[str]) -> dbtRunnerResult:
        target = Path(_after("--project-dir", arguments) or os.getcwd(), _after("--target-path", arguments) or "target")
        before = _times(target)
        code, output, events = _run(arguments, logged=bool(self._callbacks) or "show" in arguments)
        print(output)
        captured = get_capture_stream()
        if captured is not None:
            captured.write(output)
        for event in events:
            for callback in self._callbacks:
                callback(event)
        get_adapter_by_type("silt").cache.clear()  # another process may have changed the relations
        if code == _NOTHING_RAN or code < 0:
            return dbtRunnerResult(False, exception=DbtRuntimeError(output))
        if "show" in arguments:
            return dbtRunnerResult(code == 0, result=_shown(events))
        written = {name for name, when in _times(target).items() if before.get(name) != when}
        return dbtRunnerResult(code == 0, result=_result(arguments, target, written, output))


def _run(arguments: list[str], *, logged: bool) -> tuple[int, str, list[EventMsg]]:
    """Returns the exit code, the output, and the events of a log, if one is to be written."""
    with tempfile.TemporaryDirectory(prefix="silt-dbt-log-") as folder:
        log = ["--log-path", folder, "--log-format-file", "json", "--log-level-file", "debug"] if logged else []
        shown = ["--output", "json"] if "show" in arguments else []
        ended = subprocess.run(
            [_SILT, "dbt", "--no-use-colors", *log, *arguments, *shown],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_LONGEST_SECONDS,
            check=False,
        )
        return ended.returncode, ended.stdout, list(_events(Path(folder, "dbt.log"))) if logged else []


def _events(log: Path) -> Iterator[EventMsg]:
    """Returns the events of a log, as callbacks receive them."""
    for line in log.read_text().splitlines():
        noted = json.loads(line)
        name = f"{noted['info']['name']}Msg"
        kind = next(getattr(each, name) for each in _KINDS if hasattr(each, name))
        yield json_format.ParseDict(noted, kind(), ignore_unknown_fields=True)


def _shown(events: list[EventMsg]) -> RunExecutionResult:
    """Returns the rows of `show`, which are in no artifact."""
    tables = [agate.Table.from_object(json.loads(each.data.preview)) for each in events if each.info.name == "ShowNode"]
    return RunExecutionResult([_of_rows(table) for table in tables], elapsed_time=0)


def _of_rows(table: agate.Table) -> RunResult:
    node: Any = None
    return RunResult(RunStatus.Success, [], "", 0, {}, None, None, node, agate_table=table)


def _after(option: str, arguments: list[str]) -> str | None:
    return arguments[arguments.index(option) + 1] if option in arguments else None


def _times(target: Path) -> dict[str, int]:
    return {each.name: each.stat().st_mtime_ns for each in target.glob("*.json")}


def _result(arguments: list[str], target: Path, written: set[str], output: str) -> Any:
    if "ls" in arguments or "list" in arguments:
        return [line for line in output.splitlines() if line and not _LOG_LINE.match(line)]
    if "catalog.json" in written:
        return CatalogArtifact.read_and_check_versions(str(target / "catalog.json"))
    manifest = util.get_manifest(target.parent)
    if "run_results.json" not in written or manifest is None:
        return manifest
    noted = RunResultsArtifact.read_and_check_versions(str(target / "run_results.json"))
    return RunExecutionResult([_of(each, manifest) for each in noted.results], noted.elapsed_time, noted.args)


def _of(noted: RunResultOutput, manifest: Manifest) -> RunResult:
    """Returns a result with its node, in its state after the command."""
    node: Any = {**manifest.nodes, **manifest.unit_tests, **manifest.macros, **manifest.functions}[noted.unique_id]
    if noted.compiled:
        node.compiled, node.compiled_code, node.relation_name = True, noted.compiled_code, noted.relation_name
    return RunResult(
        status=noted.status,
        timing=noted.timing,
        thread_id=noted.thread_id,
        execution_time=noted.execution_time,
        adapter_response=noted.adapter_response,
        message=noted.message,
        failures=noted.failures,
        node=node,
        batch_results=noted.batch_results,
    )
