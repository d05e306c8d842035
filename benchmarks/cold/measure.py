"""Runs each case by each contestant in turn, each in a separate process, and compares the results."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import entrants
from benchmarks.cases import all_cases
from benchmarks.content import Fingerprint
from benchmarks.data import FULL, QUICK
from benchmarks.harness import Case, CaseResult, Measurement, agreed, chosen

ROUNDS = 3

Process = Callable[[str, str, Sequence[str]], dict[str, Any]]
"""Runs a step of a contestant (`process.py`) with additional arguments, and returns the document that it prints."""


def measure(folder: Path, options: argparse.Namespace, process: Process | None = None) -> list[CaseResult]:
    """Creates the start tables, then runs every case by its contestants in turn (A B A B).

    Raises:
        ResultsDifferError: if the contestants' results have different rows.
        RuntimeError: if a process failed; the message is its output.
    """
    names = entrants.names(options)
    cases = chosen(all_cases(QUICK if options.quick else FULL), options.case)
    run = process or _in_own_process(folder, entrants.session_arguments(options))
    for name in names:
        if of_it := [each.name for each in cases if name in _taking_part(each, names)]:
            run("prepare", name, _named(of_it))
    return [_measured(case, names, run) for case in cases]


def _measured(case: Case, names: Sequence[str], run: Process) -> CaseResult:
    taking_part = _taking_part(case, names)
    seconds: dict[str, list[float]] = {name: [] for name in taking_part}
    prints: dict[str, Fingerprint] = {}
    for round_ in range(ROUNDS):
        for name in taking_part:
            found = run("run", name, [*_named([case.name]), *(["--check"] if round_ == 0 else [])])
            seconds[name].append(found["seconds"])
            prints |= {each: Fingerprint(**values) for each, values in found["prints"].items()}
    rows = agreed(case.name, prints).rows
    measurements = tuple(Measurement(name, tuple(times)) for name, times in seconds.items())
    return CaseResult(case.name, rows, measurements, has_baseline=taking_part[0] == names[0])


def _taking_part(case: Case, names: Sequence[str]) -> list[str]:
    return [name for name in names if case.needs <= entrants.CONTESTANTS[name].offers]


def _named(cases: Sequence[str]) -> list[str]:
    return [argument for name in cases for argument in ("--case", name)]


def _in_own_process(folder: Path, of_session: Sequence[str]) -> Process:
    def run(step: str, name: str, arguments: Sequence[str]) -> dict[str, Any]:
        command = [sys.executable, "-m", "benchmarks.cold.process", step, name, str(folder), *of_session, *arguments]
        done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}\n{done.stderr}")
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found

    return run
