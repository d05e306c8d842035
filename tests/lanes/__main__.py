"""Runs lanes one after the other, and prints a line for each: python -m tests.lanes [--keep] [LANE ...]."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.lanes.environment import LANES_FOLDER, ROOT, Environment, LaneError, kept, make
from tests.lanes.lanes import LANES, Lane

VERSIONS = """
import importlib.metadata, json, platform
names = ("pyspark", "pyarrow", "pandas", "dbt-core", "dbt-adapters", "dbt-spark")
print(json.dumps({"Python": platform.python_version(), **{name: importlib.metadata.version(name) for name in names}}))
"""


@dataclass(frozen=True)
class Outcome:
    """The result of a lane: its versions, and the numbers of tests by outcome, or the reason why it was not run."""

    lane: Lane
    versions: dict[str, str] = field(default_factory=dict)
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0
    not_run: str = ""

    def line(self) -> str:
        if self.not_run:
            return f"{self.lane.name}: not run: {self.not_run}"
        may = " (it may fail)" if self.lane.may_fail and self.failed else ""
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        tests = f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped in {self.seconds:.0f} s"
        return f"{self.lane.name}: {tests} ({versions}){may}"


def main() -> int:
    """Runs the named lanes, or all; returns 0 if no test failed, except in lanes that may fail. Reports a lane whose
    Python or packages are missing.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.lanes")
    parser.add_argument("--keep", action="store_true", help="use the environments of the run before")
    parser.add_argument("names", nargs="*", metavar="LANE", help=", ".join(lane.name for lane in LANES))
    parser.add_argument("--workers", type=int, default=2, help="processes of pytest")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - {lane.name for lane in LANES}:
        parser.error(f"there is no lane {', '.join(sorted(unknown))}")
    lanes = [lane for lane in LANES if not arguments.names or lane.name in arguments.names]
    outcomes = [run(lane, arguments.keep, arguments.workers) for lane in lanes]
    print("\n".join(["", *(outcome.line() for outcome in outcomes)]))
    return 1 if any(outcome.failed and not outcome.lane.may_fail for outcome in outcomes) else 0


def run(lane: Lane, keep: bool, workers: int) -> Outcome:
    """Creates the lane's environment and runs its tests."""
    print(f"\n== {lane.name}: making its environment", flush=True)
    try:
        environment = kept(lane) if keep else make(lane)
    except LaneError as error:
        print(error)
        return Outcome(lane, not_run=str(error).splitlines()[0])
    versions = _versions(environment)
    print(", ".join(f"{name} {version}" for name, version in versions.items()), flush=True)
    return _tested(lane, environment, versions, workers)


def _tested(lane: Lane, environment: Environment, versions: dict[str, str], workers: int) -> Outcome:
    report = environment.folder / "report.xml"
    report.unlink(missing_ok=True)
    command: Sequence[object] = [
        *(environment.python, "-m", "pytest", "--quiet", "--tb", "short", "--compiled"),
        *("--numprocesses", workers, "--dist", "loadscope"),
        *("--junit-xml", report, "-o", f"cache_dir={environment.folder / 'pytest'}"),
        *(*lane.options, *lane.tests),
    ]
    started = time.monotonic()
    ended = subprocess.run(
        list(map(str, command)), cwd=ROOT, env={**environment.variables(), **lane.environ}, check=False
    )
    seconds = time.monotonic() - started
    suite = ET.parse(report).getroot().find("testsuite") if report.exists() else None
    if suite is None:
        return Outcome(lane, versions, failed=1, seconds=seconds)
    failed, skipped = int(suite.attrib["failures"]) + int(suite.attrib["errors"]), int(suite.attrib["skipped"])
    passed = int(suite.attrib["tests"]) - failed - skipped
    return Outcome(lane, versions, passed, failed or int(ended.returncode != 0), skipped, seconds)


def _versions(environment: Environment) -> dict[str, str]:
    asked = subprocess.run([environment.python, "-c", VERSIONS], capture_output=True, text=True, check=True)
    java = subprocess.run(
        [environment.java_home / "bin" / "java", "-version"], capture_output=True, text=True, check=True
    )
    return {**json.loads(asked.stdout), "Java": java.stderr.split('"')[1]}


if __name__ == "__main__":
    LANES_FOLDER.mkdir(exist_ok=True)
    sys.exit(main())
