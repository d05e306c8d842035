"""Runs one contestant in a separate process: creates start tables, or runs one case as the tenth statement.

python -m benchmarks.cold.process prepare|run CONTESTANT FOLDER --case NAME ...; the last line that it prints is a
document: the seconds, and with `--check` the fingerprints of the actual and the expected result.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import entrants
from benchmarks.cases import all_cases
from benchmarks.content import fingerprint
from benchmarks.contestants.contestant import Contestant
from benchmarks.contestants.delta_spark import DeltaSpark
from benchmarks.data import FULL, QUICK, Rows
from benchmarks.harness import Case, chosen, timed
from dbt.adapters.silt.session.spark import stop_spark


def main(arguments: Sequence[str]) -> None:
    """Creates the start tables or runs the case."""
    options = _parser().parse_args(arguments)
    cases = chosen(all_cases(QUICK if options.quick else FULL), options.case)
    spark = entrants.session(options, with_delta_spark=options.contestant == DeltaSpark.name)
    contestant = entrants.contestant(options.contestant, spark, options.folder)
    if options.step == "prepare":
        for case in cases:
            case.prepare(contestant)
        found: dict[str, Any] = {}
    else:
        nine_statements(contestant)
        found = run(cases[0], contestant, options.check)
    stop_spark()
    print(json.dumps(found))


def nine_statements(contestant: Contestant) -> None:
    """Runs nine small statements on a separate table, before the process's tenth statement."""
    table, first = "earlier", Rows(0, 1000)
    appended = [Rows(1000 + 100 * each, 1100 + 100 * each) for each in range(3)]
    merged = [Rows(500, 1500, revision=1), Rows(600, 1600, revision=2)]
    contestant.provide(first, *appended, *merged)
    contestant.create(table, first)
    for rows in appended:
        contestant.append(table, rows)
    for rows in merged:
        contestant.settle(table)
        contestant.merge(table, rows)
    contestant.settle(table)
    contestant.delete(table, 0, 100)
    contestant.settle(table)
    for key in (200, 1200):
        contestant.find(table, key)
    contestant.remove(table)


def run(case: Case, contestant: Contestant, check: bool) -> dict[str, Any]:
    """Runs the case once, on a copy of a start table that another process created."""
    case.prepare(contestant)
    seconds = timed(case, contestant, 0, time.perf_counter)
    prints = {}
    if check:
        prints[contestant.name] = dataclasses.asdict(fingerprint(case.result(contestant, 0)))
        if (expected := case.expected()) is not None:
            prints["expected"] = dataclasses.asdict(fingerprint(expected))
    case.finish(contestant, 0)
    return {"seconds": seconds, "prints": prints}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cold.process")
    parser.add_argument("step", choices=("prepare", "run"))
    parser.add_argument("contestant", choices=tuple(entrants.CONTESTANTS))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--case", action="append", required=True)
    parser.add_argument("--check", action="store_true")
    entrants.add_session_options(parser)
    return parser


if __name__ == "__main__":
    main(sys.argv[1:])
