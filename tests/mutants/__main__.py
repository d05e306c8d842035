"""Changes the safety core in small ways and reports which changes no test notices.

python -m tests.mutants                                       all mutants
python -m tests.mutants engine/kernel/log --jobs 2            the mutants of a folder or module
python -m tests.mutants --sample 60 --seed 1                  sixty mutants
python -m tests.mutants engine/kernel/log --list              their names

python -m tests.mutants --spark                               MERGE, DELETE and UPDATE, by tests with Spark
python -m tests.mutants --fast --sample 400                   how many of the killed mutants the fast set kills

The last lines are the score of each folder. The command fails if a mutant survives that is not in `equivalent.yaml`.
With `--fast`, the tests of the fast set (`make test`) run before the others, and the command fails if they kill less
than 90 % of the mutants that the tests of the gate kill.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Final

import pytest
import yaml

from tests.gate.selection import FastSet
from tests.mutants.functions import PACKAGE, ROOT, modules
from tests.mutants.kinds import Mutant, mutants_of
from tests.mutants.runner import CACHE, Result, Runner

CORE: Final = (
    "engine/kernel/transaction",
    "engine/kernel/log",
    "engine/kernel/scan",
    "engine/catalog/objects",
    "engine/catalog/folders",
    "records/units.py",
    "runs/logical_run",
)
TESTS: Final = (
    "tests/unit/engine/kernel",
    "tests/unit/engine/catalog",
    "tests/unit/records",
    "tests/unit/runs",
    "tests/races",
    "tests/simulation",
    "--ignore=tests/simulation/test_liveness.py",
    "--ignore=tests/simulation/test_simulation_finds_bugs.py",
    "--ignore=tests/simulation/test_traces.py",
)
ON_SPARK: Final = ("engine/commands/merge", "engine/commands/rows")
TESTS_ON_SPARK: Final = ("tests/unit/engine/commands/merge", "tests/unit/engine/commands/rows")
EQUIVALENT: Final = Path(__file__).with_name("equivalent.yaml")
# The plugin imports hypothesis before pytest does.
_QUIET: Final = ("-qq", "-p", "no:cacheprovider", "--capture=no", "-W", "ignore::pytest.PytestAssertRewriteWarning")
_FAST: Final = FastSet.read()
LEAST_SHARE: Final = 0.9
_LIVE: Final = ("survived", "unreached")


def main(arguments: list[str]) -> int:
    options = _options(arguments)
    core, tests = (ON_SPARK, TESTS_ON_SPARK) if options.spark else (CORE, TESTS)
    files = paths(options.places or core)
    mutants = chosen(files, options.sample, options.seed)
    if options.list:
        print(*(f"{path}:{mutant.line}: {mutant.name}" for path, mutant in mutants), sep="\n")
        return 0
    results = _earlier(options.results)
    done = {(result.path, result.name) for result in results} | listed_equivalents().keys()
    names = sorted({*files, *paths(core)})
    runner = Runner(
        load=lambda: modules(names),
        mutants=[(path, mutant) for path, mutant in mutants if (path, mutant.name) not in done],
        jobs=options.jobs,
        spark=options.spark,
        report=lambda result: _report(result, results, options.results),
        is_first=_is_fast if options.fast else lambda test: False,
    )
    os.environ["CI"] = "true"  # the tests draw the same examples in each run
    ended = pytest.main([*(options.tests or tests), *_QUIET], plugins=[runner])
    if ended not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        return int(ended)
    print("\n".join(score(results)))
    if options.fast:
        share, lines = fast_share(results, _is_fast)
        print("\n".join(lines))
        return 0 if share >= LEAST_SHARE else 1
    return 1 if any(result.state in _LIVE for result in results) else 0


def _report(result: Result, results: list[Result], file: Path | None) -> None:
    results.append(result)
    if result.state in _LIVE:
        print(f"{result.state}: {result.path}:{result.line}: {result.name}", file=sys.__stdout__, flush=True)
    if file is not None:
        with file.open("a", encoding="utf-8") as opened:
            opened.write(json.dumps(asdict(result)) + "\n")


def paths(places: tuple[str, ...] | list[str]) -> list[str]:
    """Returns the modules at these places, which are folders and modules below the package."""
    found: set[str] = set()
    for place in places:
        files = [PACKAGE / place] if place.endswith(".py") else (PACKAGE / place).rglob("*.py")
        found.update(file.relative_to(PACKAGE).as_posix() for file in files)
    return sorted(found)


def chosen(files: list[str], sample: int | None, seed: int) -> list[tuple[str, Mutant]]:
    """Returns the mutants of the modules; of a sample the same ones for the same seed."""
    found = [(path, mutant) for path in files for mutant in mutants_of((PACKAGE / path).read_text(encoding="utf-8"))]
    if sample is None or sample >= len(found):
        return found
    return random.Random(seed).sample(found, sample)


def listed_equivalents() -> dict[tuple[str, str], str]:
    """Returns the reason for each equivalent mutant, by the path of its module and its name."""
    read: dict[str, dict[str, str]] = yaml.safe_load(EQUIVALENT.read_text(encoding="utf-8"))
    return {(path, name): reason for path, of_path in read.items() for name, reason in of_path.items()}


def score(results: list[Result]) -> list[str]:
    """Returns a line for each folder: the killed mutants, all mutants that can run, and those that survived."""
    states: dict[str, Counter[str]] = defaultdict(Counter)
    for result in results:
        if result.state != "impossible":
            states[result.path.rpartition("/")[0]][result.state] += 1
            states["all"][result.state] += 1
    return [_line(folder, states[folder]) for folder in sorted(states, key=lambda each: (each == "all", each))]


def fast_share(results: list[Result], is_fast: Callable[[str], bool]) -> tuple[float, list[str]]:
    """Returns the share of the killed mutants that the fast set kills, and lines that state it and the others.

    A mutant whose tests do not end has no killer; the tests of the fast set were then the first that did not end.
    """
    killed = [result for result in results if result.state in ("killed", "timeout")]
    missed = [result for result in killed if result.killer and not is_fast(result.killer)]
    share = 1 - len(missed) / len(killed) if killed else 0.0
    lines = [f"only {each.killer} kills: {each.path}:{each.line}: {each.name}" for each in missed]
    count = len(killed) - len(missed)
    return share, [*lines, f"the fast set kills {count} of {len(killed)} mutants that the gate kills ({share:.1%})"]


def _is_fast(test: str) -> bool:
    return _FAST.name_of(test) is not None


def _line(folder: str, states: Counter[str]) -> str:
    killed, total = states["killed"] + states["timeout"], states.total()
    return f"{folder}: {killed} of {total} killed ({killed / total:.1%})"


def _earlier(file: Path | None) -> list[Result]:
    lines = file.read_text(encoding="utf-8").splitlines() if file is not None and file.exists() else []
    return [Result(**json.loads(line)) for line in lines]


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.mutants", description=__doc__.splitlines()[0])
    parser.add_argument("places", nargs="*", help="folders and modules below the package; without them the whole core")
    parser.add_argument("--sample", type=int, help="how many mutants are tried")
    parser.add_argument("--seed", type=int, default=1, help="which sample")
    parser.add_argument("--jobs", type=int, default=1, help="how many mutants are tried at the same time")
    parser.add_argument("--results", type=Path, help="a file of results: its mutants are not tried again")
    parser.add_argument("--tests", action="append", help="a file or folder of tests; without it those of the core")
    parser.add_argument("--spark", action="store_true", help="the commands on Spark, with one Spark for all mutants")
    parser.add_argument("--fast", action="store_true", help="how many of the killed mutants the fast set kills")
    parser.add_argument("--list", action="store_true", help="only print the mutants")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    os.chdir(ROOT)
    CACHE.mkdir(exist_ok=True)
    sys.exit(main(sys.argv[1:]))
