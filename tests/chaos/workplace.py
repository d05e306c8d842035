"""A copy of the project, and dbt commands on it in separate processes."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.chaos.forked import Request, run
from tests.chaos.steps import IN_PROCESS, Moment, Step
from tests.chaos.warehouses import Folder, Prefix, Warehouse
from tests.cloud.servers import ObjectServer
from tests.connect_server import use_in_profiles

PROJECT = Path(__file__).parent / "project"
_ROOT = Path(__file__).parents[2]
_LONGEST_SECONDS = 600
_PRINTED = re.compile(r"Continue that run with `([^`]*)`")
_FIRST_DAY = 1


@dataclass(frozen=True)
class Command:
    """A dbt command of a round, without its run id.

    Attributes:
        arguments: of dbt, beginning with the command's name.
    """

    arguments: tuple[str, ...]
    round: int

    @classmethod
    def of_round(cls, round_: int) -> tuple[Command, ...]:
        """Returns the commands of a round: a build, clones of some tables, and an operation that writes."""
        first, last = (f"2024-01-{_FIRST_DAY + round_ + days:02}" for days in (0, 4))
        build = ("build", "--event-time-start", first, "--event-time-end", last)
        clone = ("clone", "--full-refresh", "--target", "clone", "--state", "built", "--select", "as_append", "hooked")
        operation = ("run-operation", "note", "--args", json.dumps({"round": round_}))
        return (cls(build, round_), cls(clone, round_), cls(operation, round_))

    def given(self, run_id: str | None = None) -> tuple[str, ...]:
        """Returns the arguments, with the run id in the variables if it is set."""
        variables: dict[str, Any] = {"round": self.round}
        if run_id is not None:
            variables["silt_run_id"] = run_id
        return (*self.arguments, "--vars", json.dumps(variables))


@dataclass(frozen=True)
class Ended:
    """How a dbt process ended.

    Attributes:
        code: its exit code, negative for a signal.
        output: its standard output and standard error.
        facts: the report of `dbt_killed`: the step of the signal, or all steps.
    """

    code: int
    output: str
    facts: dict[str, Any]

    @property
    def struck(self) -> bool:
        return "struck" in self.facts

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL

    @property
    def printed_command(self) -> tuple[str, ...] | None:
        """The arguments of the dbt command that the output names to continue the run."""
        found = _PRINTED.search(self.output)
        return tuple(shlex.split(found[1])[1:]) if found else None


@dataclass(frozen=True)
class Workplace:
    """A folder with a copy of the project in `project`, and the warehouse that it builds.

    Attributes:
        variables: additional environment variables of its runs.
        publish: when its builds become visible: the profile's `publish`.
    """

    root: Path
    warehouse: Warehouse
    variables: dict[str, str] = field(default_factory=dict)
    publish: str = "at_once"

    @classmethod
    def make(
        cls, root: Path, remote: str | None = None, cloud: ObjectServer | None = None, publish: str = "at_once"
    ) -> Workplace:
        """Copies the project.

        Args:
            remote: the Spark Connect server that its runs share; by default, each run starts its own Spark.
            cloud: the object store of its warehouse; by default, it is in the folder `warehouse`.
        """
        shutil.copytree(PROJECT, root / "project")
        if remote is not None:
            use_in_profiles(root / "project" / "profiles.yml", remote)
        if cloud is None:
            made = cls(root, Folder(root / "warehouse"), publish=publish)
            made._configure("publish", publish)
            return made
        made = cls(root, warehouse := Prefix(cloud, f"{root.parent.name} é/{root.name}"), publish=publish)
        made._configure("publish", publish)
        made._configure("storage", warehouse.storage())
        return made

    def keep_spark(self) -> None:
        """Keeps the Spark of its runs running."""
        self._configure("keep_alive", "5 minutes")

    def _configure(self, field: str, value: object) -> None:
        """Sets a field of each target."""
        profiles = self.project / "profiles.yml"
        content = yaml.safe_load(profiles.read_text(encoding="utf-8"))
        for target in content["silt"]["outputs"].values():
            target[field] = value
        profiles.write_text(yaml.safe_dump(content), encoding="utf-8")

    @property
    def project(self) -> Path:
        return self.root / "project"

    def dbt(
        self, arguments: tuple[str, ...], moment: Moment | None = None, run_id: str = "", failing: bool = False
    ) -> Ended:
        """Runs a dbt command to its end, or until a moment.

        Args:
            run_id: of the profile.
            failing: whether a hook fails after its model's commit.
        """
        number = len(list(self.root.glob("*.log"))) + 1
        log, report = self.root / f"{number:03}.log", self.root / f"{number:03}.json"
        requests = self.warehouse.requests
        is_requested = requests is not None and moment is not None and Step[moment.step] not in IN_PROCESS
        own = [str(report), *([] if moment is None or is_requested else [moment.to_json()])]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH")))),
            **self.variables,
            "SILT_TEST_WAREHOUSE": self.warehouse.url,
            "SILT_TEST_RUN_ID": run_id,
            "CHAOS_FAILING": "yes" if failing else "",
            "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
            "DBT_PROFILES_DIR": str(self.project),
            "DBT_USE_COLORS": "false",
        }
        log.write_text(f"$ SILT_TEST_RUN_ID={run_id} dbt {shlex.join(arguments)}\n")
        request = Request((*own, "--", *arguments), str(self.project), environment, str(log))
        if requests is None:
            code, seen = run(request, _LONGEST_SECONDS), {}  # type: ignore[var-annotated]
        else:
            code, seen = requests.of_process(
                moment if is_requested else None, lambda started: run(request, _LONGEST_SECONDS, started)
            )
        lines = report.read_text().splitlines() if report.exists() else []
        return Ended(code, log.read_text(errors="replace"), _facts(json.loads(lines[0]) if lines else {}, seen))

    def runs_entered(self) -> int:
        """Returns the number of runs in `silt_runs.json`."""
        registry = self.project / "target" / "silt_runs.json"
        return len(json.loads(registry.read_text())["runs"]) if registry.exists() else 0

    def keep_manifest(self) -> None:
        """Keeps dbt's manifest of the built tables, for `dbt clone`."""
        (self.project / "built").mkdir(exist_ok=True)
        shutil.copy(self.project / "target" / "manifest.json", self.project / "built")

    def remove(self) -> None:
        self.warehouse.remove()
        shutil.rmtree(self.root)


def _facts(announced: dict[str, Any], seen: dict[str, Any]) -> dict[str, Any]:
    """Returns the report of the process, with the steps of its requests, which it cannot observe itself."""
    if not seen:
        return announced
    own = {step.name: announced.get("steps", {}).get(step.name, 0) for step in IN_PROCESS}
    return {**announced, **seen, "steps": {**seen["steps"], **own}}
