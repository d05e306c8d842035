"""Builds the public projects that are unpacked in a folder: python -m tests.projects FOLDER [--only NAME ...]."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.projects.cases import CASES, PACKAGES, Case, Step
from tests.projects.workplace import MissingError, Workplace

PASSED = ("success", "pass", "warn", "skipped", "no-op")
DBT = Path(sys.executable).parent / "dbt"


@dataclass(frozen=True)
class Built:
    """The result of a step.

    Args:
        counts: the number of nodes in each status.
        failed: each node that did not pass -> its message.
        ended: how dbt ended.
    """

    counts: dict[str, int]
    failed: dict[str, str]
    ended: int

    def complaints(self, step: Step) -> list[str]:
        """Returns the differences between the result and the step's expectation."""
        said = [f"{name}: {text}" for name, text in self.failed.items() if name not in step.reasons]
        said += [f"{name} passes: {reason}" for name, reason in step.reasons.items() if name not in self.failed]
        if step.counts is not None and self.counts != step.counts:
            said.append(f"the counts must be {_text(step.counts)}")
        if self.ended and not self.failed:
            said.append(f"dbt ended with {self.ended}")
        return said


def main() -> int:
    """Builds the projects and prints a line for each step; returns 0 if all existing projects meet
    their expectations.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.projects")
    parser.add_argument("folder", type=Path, help="the folder in which each project is a folder")
    parser.add_argument("--scratch", type=Path, default=Path(".projects"), help="where they are built")
    parser.add_argument("--only", nargs="*", metavar="NAME", help=", ".join(case.name for case in CASES))
    arguments = parser.parse_args()
    workplace = Workplace(arguments.folder.resolve(), arguments.scratch.resolve())
    known = [case for case in CASES if not arguments.only or case.name in arguments.only]
    unknown = [] if arguments.only else workplace.unknown({case.folder.split("/")[0] for case in CASES} | PACKAGES)
    outcomes = [build(case, workplace) for case in (*known, *(Case(name, name) for name in unknown))]
    return 0 if all(outcomes) else 1


def build(case: Case, workplace: Workplace) -> bool:
    """Builds a project and prints its result; returns whether it meets all expectations."""
    try:
        place = workplace.make(case)
    except MissingError as error:
        print(f"{case.name}: missing: {error}")
        return True
    good = True
    for step in case.steps:
        began = time.monotonic()
        built = run(step, place, case)
        complaints = built.complaints(step)
        good = good and not complaints
        print(f"{case.name}: dbt {step.arguments[0]}: {_text(built.counts)} in {time.monotonic() - began:.0f} s")
        print("".join(f"  {each}\n" for each in complaints), end="", flush=True)
    return good


def run(step: Step, place: Path, case: Case) -> Built:
    """Runs a step's command in the project's folder, and writes its output to `printed.txt` there."""
    results = place / "target" / "run_results.json"
    results.unlink(missing_ok=True)
    with (place / "printed.txt").open("a") as printed:
        ended = subprocess.run(
            [DBT, "--no-use-colors", *step.arguments, "--profiles-dir", str(place)],
            cwd=place,
            env={**os.environ, **case.environment},
            stdout=printed,
            stderr=subprocess.STDOUT,
            check=False,
        )
    found = json.loads(results.read_text())["results"] if results.is_file() else []
    failed = {each["unique_id"]: each["message"] or "" for each in found if each["status"] not in PASSED}
    counts = Counter(each["status"] for each in found)
    return Built(dict(counts), {_name(unique_id): text for unique_id, text in failed.items()}, ended.returncode)


def _name(unique_id: str) -> str:
    """Returns a node's name; for a unit test its model's, because dbt skips the model's other unit tests after a
    failure.
    """
    return unique_id.split(".")[2]


def _text(counts: object) -> str:
    return ", ".join(f"{number} {status}" for status, number in sorted(dict(counts).items())) or "no results"  # type: ignore[call-overload]


if __name__ == "__main__":
    sys.exit(main())
