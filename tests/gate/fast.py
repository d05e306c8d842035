"""Chooses the fast set of tests from the measurements: python -m tests.gate.fast --seconds 700

First come cheap tests for the minimums. Then the test with the most new value for each second is added, until
the seconds are spent. The value of a test is that of the blocks that it reaches: the number of mutants in a block of
the core, which `tests.mutants` changes, and 1 for another block. A second test of a block counts half, a third a
quarter. The test that killed a mutant in a run of `tests.mutants --results` gets an additional value for it.
"""

from __future__ import annotations

import argparse
import heapq
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np

from dbt.adapters.silt.engine.statements import route
from dbt.adapters.silt.materializations.incremental.strategies import STRATEGIES
from tests.durations import FILE as DURATIONS
from tests.gate.measure import Measured, measured
from tests.gate.selection import FastSet
from tests.mutants.__main__ import CORE, chosen, paths
from tests.mutants.functions import ROOT

IDLE: Final = 0.84
"""The seconds of an idle machine for each recorded second: with two workers, the whole gate took 2,866 s, including
150 s for `make check`. Its recorded durations are 6,479 s.
"""
_WHOLE: Final = "tests/functional/"
"""Tests of these files are chosen by class, because a class is a dbt project."""
_SPLIT_SECONDS: Final = 2.0
"""The cases of a function that takes longer are chosen one by one."""
_LEAST_SECONDS: Final = 0.004
_OF_A_KILLED_MUTANT: Final = 4.0


@dataclass(frozen=True)
class Candidate:
    """A class, a function or a case.

    Attributes:
        seconds: of an idle machine.
        values: what it reaches, with the value of each part.
    """

    name: str
    seconds: float
    facts: frozenset[str]
    values: Mapping[object, float]


def minimums() -> dict[str, tuple[str, ...]]:
    """Returns the minimums of the set: for each name, facts in the order of preference."""
    macros = "\n".join(file.read_text(encoding="utf-8") for file in sorted((ROOT / "macros").rglob("*.sql")))
    kinds = sorted(set(re.findall(r"{%-? materialization (\w+), adapter='silt'", macros)))
    routes = sorted(kind.__name__ for kind in route._ROUTES)
    return {
        **{f"route {kind}": (f"route {kind}", f"refused {kind}") for kind in routes},
        **{f"materialization {kind}": (f"materialization {kind}", f"refused {kind}") for kind in kinds},
        **{f"strategy {name}": (f"strategy {name}",) for name in STRATEGIES},
        **{f"test {name}": (f"test {name}",) for name in TESTS},
    }


TESTS: Final = (
    "tests/gate/test_fast_set.py",
    "tests/publication/test_model.py",
    "tests/publication/test_names_model.py",
    "tests/publication/test_killed.py",
    "tests/simulation/test_simulation.py",
    "tests/simulation/test_catalog_simulation.py",
    "tests/functional/reuse/test_killed_before_a_hook.py::test_the_next_run_runs_the_hook",
)
"""Files and functions with a test in the set: its own rules, the models of publications, simulations and a kill."""


Worth: TypeAlias = Callable[[str, int], float]
"""The value of a block by its path and line."""


def candidates(tests: Iterable[Measured], worth: Worth, killers: Mapping[str, set[object]]) -> list[Candidate]:
    """Groups the measured tests.

    Args:
        killers: the mutants that each test has killed.
    """
    grouped: dict[str, list[Measured]] = defaultdict(list)
    for test in tests:
        grouped[_group(test.test)].append(test)
    seconds = _idle_seconds(chain.from_iterable(grouped.values()))
    found = []
    for name, members in grouped.items():
        is_split = sum(seconds[each.test] for each in members) > _SPLIT_SECONDS and not name.startswith(_WHOLE)
        for part, tests_of_part in [(each.test, [each]) for each in members] if is_split else [(name, members)]:
            found.append(_candidate(part, tests_of_part, seconds, worth, killers))
    return found


def _group(test: str) -> str:
    function = test.partition("[")[0]
    above = function.rpartition("::")[0]
    return above if test.startswith(_WHOLE) and "::" in above else function


def _candidate(
    name: str,
    tests: Sequence[Measured],
    seconds: Mapping[str, float],
    worth: Worth,
    killers: Mapping[str, set[object]],
) -> Candidate:
    blocks = {(path, line) for test in tests for path, lines in test.blocks.items() for line in lines}
    found: dict[object, float] = {block: worth(*block) for block in blocks}
    for test in tests:
        found.update(dict.fromkeys(killers.get(test.test, ()), _OF_A_KILLED_MUTANT))
    facts = {fact for test in tests for fact in test.facts} | {
        f"test {each}" for each in TESTS if name.startswith(each)
    }
    total = max(_LEAST_SECONDS, sum(seconds[test.test] for test in tests))
    return Candidate(name, total, frozenset(facts), found)


def _idle_seconds(tests: Iterable[Measured]) -> dict[str, float]:
    """Divides the recorded seconds of each file, on an idle machine, among its measured tests.

    Tests of files without a record are as much faster than measured as all recorded files together.
    """
    recorded: dict[str, float] = defaultdict(float)
    for scope, took in json.loads(DURATIONS.read_text(encoding="utf-8")).items():
        recorded[scope.partition("::")[0]] += took * IDLE
    of_tests = {test.test: test.seconds for test in tests}
    of_files: dict[str, float] = defaultdict(float)
    for test, took in of_tests.items():
        of_files[test.partition("::")[0]] += took
    known = recorded.keys() & of_files.keys()
    usual = sum(recorded[file] for file in known) / (sum(of_files[file] for file in known) or 1)
    factors = {file: min(1.0, recorded[file] / took if file in known else usual) for file, took in of_files.items()}
    return {test: took * factors[test.partition("::")[0]] for test, took in of_tests.items()}


def cover(found: Sequence[Candidate], begun: Sequence[Candidate], seconds: float) -> list[Candidate]:
    """Adds to a set the candidates with the most new value for each second, while they fit.

    The gain of a candidate never rises, so the first in the queue is the best if its gain, computed again, is still
    above that of the second.

    Args:
        begun: the candidates that are in the set already.
        seconds: of the whole set.
    """
    pool = [*begun, *(each for each in found if each not in begun)]
    numbers = {part: number for number, part in enumerate({part for each in pool for part in each.values})}
    parts = [np.array([numbers[part] for part in each.values], dtype=int) for each in pool]
    values = [np.array([*each.values.values()], dtype=float) for each in pool]
    shares = np.ones(len(numbers))
    for reached in parts[: len(begun)]:
        shares[reached] /= 2
    result, spent = [*begun], sum(each.seconds for each in begun)
    queue = [(-float("inf"), number) for number in range(len(begun), len(pool))]
    while queue:
        _, number = heapq.heappop(queue)
        each = pool[number]
        if spent + each.seconds > seconds:
            continue
        gain = float(values[number] @ shares[parts[number]]) / each.seconds
        if queue and -gain > queue[0][0]:
            heapq.heappush(queue, (-gain, number))
        elif gain > 0:
            result.append(each)
            shares[parts[number]] /= 2
            spent += each.seconds
    return result


def least(found: Sequence[Candidate], wanted: Mapping[str, Sequence[str]]) -> dict[str, Candidate]:
    """Returns for each minimum a candidate that has been taken already, or else the one with the most value for little
    time.

    Raises:
        LookupError: if a minimum has no candidate.
    """
    taken: dict[str, Candidate] = {}
    for name, facts in wanted.items():
        having = next((having for fact in facts if (having := [each for each in found if fact in each.facts])), None)
        if having is None:
            raise LookupError(f"no measured test for: {name}")
        used = [each for each in having if each in taken.values()]
        taken[name] = max(used or having, key=_value_in_little_time)
    return taken


def _value_in_little_time(this: Candidate) -> tuple[float, float]:
    return sum(this.values.values()) / (1 + this.seconds), -this.seconds


def worth_of_blocks() -> Worth:
    """Returns the value of a block by its path and line: its mutants in the core, 1 elsewhere."""
    core = paths(CORE)
    counts = Counter((path, mutant.block) for path, mutant in chosen(core, None, 0))
    return lambda path, line: counts[path, line] if path in core else 1


def killers_in(file: Path) -> dict[str, set[object]]:
    """Returns the mutants that each test has killed, from a file of `tests.mutants --results`."""
    found: dict[str, set[object]] = defaultdict(set)
    for line in file.read_text(encoding="utf-8").splitlines():
        result = json.loads(line)
        found[result["killer"]].add((result["path"], result["name"]))
    return found


def main() -> None:
    """Chooses the set, writes its file and prints its size."""
    parser = argparse.ArgumentParser(prog="python -m tests.gate.fast")
    parser.add_argument("--seconds", type=float, default=700.0, help="of one worker on an idle machine")
    parser.add_argument("--results", type=Path, help="the results of a run of tests.mutants")
    arguments = parser.parse_args()
    killers = killers_in(arguments.results) if arguments.results else {}
    found = candidates(measured(), worth_of_blocks(), killers)
    least_tests = least(found, minimums())
    begun = [*{each.name: each for each in least_tests.values()}.values()]
    taken = cover(found, begun, arguments.seconds)
    as_set({name: each.name for name, each in least_tests.items()}, taken).write()
    parts = {part for each in found for part in each.values}
    covered = {part for each in taken for part in each.values}
    print(f"{len(taken)} of {len(found)} candidates, {sum(each.seconds for each in taken):.0f} s")
    print(
        f"{len(covered)} of {len(parts)} reached blocks; the minimums take {sum(each.seconds for each in begun):.0f} s"
    )


def as_set(least_tests: Mapping[str, str], taken: Iterable[Candidate]) -> FastSet:
    """Returns the chosen candidates by file."""
    seconds: dict[str, float] = defaultdict(float)
    tests: dict[str, tuple[str, ...]] = defaultdict(tuple)
    for each in taken:
        path, _, name = each.name.partition("::")
        tests[path] += (name,)
        seconds[path] += each.seconds
    return FastSet({path: round(took, 2) for path, took in seconds.items()}, least_tests, tests)


if __name__ == "__main__":
    main()
