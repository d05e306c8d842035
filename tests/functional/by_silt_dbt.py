"""Runs the commands of dbt's suite as `silt dbt`, in the place of its `dbtRunner`.

What a command gives is what its process leaves: the exit code, what it printed, and the artifacts of this command in
`target`. The nodes of results are those of the manifest that it kept. What is only in dbt's own process (the type of an
exception, the rows of `show`, callbacks) is not there.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dbt.adapters.factory import get_adapter_by_type
from dbt.artifacts.schemas.catalog import CatalogArtifact
from dbt.artifacts.schemas.run import RunExecutionResult, RunResult, RunResultOutput, RunResultsArtifact
from dbt.cli.main import dbtRunnerResult
from dbt.contracts.graph.manifest import Manifest
from dbt.exceptions import DbtInternalError
from dbt.tests import util
from dbt_common.events.functions import get_capture_stream

from dbt.adapters.silt.command_server import control

_SILT = str(Path(sys.executable).with_name("silt"))
_LONGEST_SECONDS = 300
_LOG_LINE = re.compile(r"\d\d:\d\d:\d\d ")
_NOTHING_RAN = 2
"""dbt's exit code where a command did not come to its nodes."""


def install(patch: pytest.MonkeyPatch) -> None:
    """Has `run_dbt` use it."""
    patch.setattr(util, "dbtRunner", SiltDbt)


def stop() -> None:
    """Ends the command servers."""
    control.stop()


class SiltDbt:
    """As `dbtRunner`, of what `run_dbt` needs."""

    def __init__(self, manifest: Manifest | None = None, callbacks: list[Callable[..., None]] | None = None) -> None:
        assert manifest is None and not callbacks, "they would be in another process"

    def invoke(self, arguments: list[str]) -> dbtRunnerResult:
        target = Path(_after("--project-dir", arguments) or os.getcwd(), _after("--target-path", arguments) or "target")
        before = _times(target)
        ended = subprocess.run(
            [_SILT, "dbt", "--no-use-colors", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_LONGEST_SECONDS,
            check=False,
        )
        print(ended.stdout)
        captured = get_capture_stream()
        if captured is not None:
            captured.write(ended.stdout)
        get_adapter_by_type("silt").cache.clear()  # another process has changed what there is
        written = {name for name, when in _times(target).items() if before.get(name) != when}
        success = ended.returncode == 0
        if ended.returncode == _NOTHING_RAN or ended.returncode < 0:
            return dbtRunnerResult(success, exception=DbtInternalError(ended.stdout))
        return dbtRunnerResult(success, result=_result(arguments, target, written, ended.stdout))


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
    """A result with its node, as it is after the command."""
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
