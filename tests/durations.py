"""Starts the longest tests first, by the durations of an earlier run; `--keep-durations` records durations. `--shard
2/4` runs the second of four parts that take about as long as each other.

A worker gets tests in scopes, a class or a module at a time. A long scope that begins last keeps one worker busy while
the other is idle.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

FILE = Path(__file__).with_name("durations.json")
_LEAST_SECONDS = 0.5
"""Shorter scopes are not recorded: they come last, in the order of their names."""
_UNKNOWN_SECONDS = 5.0
"""The assumed seconds of a scope whose file no run has recorded."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--keep-durations", action="store_true", help=f"write the seconds of each scope to {FILE.name}")
    parser.addoption("--shard", metavar="K/N", type=shard, help="run the K-th of N parts that take about equally long")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--keep-durations") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Keeper(), "durations-keeper")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keeps the tests of one shard, and sorts the tests of a worker.

    A run in one process and a run with an end (`--until`) keep the order of their files.
    """
    expected = expected_seconds(dict.fromkeys(scope_of(each.nodeid) for each in items))
    if config.getoption("--shard"):
        number, count = config.getoption("--shard")
        mine = shards(expected, count)[number - 1]
        config.hook.pytest_deselected(items=[each for each in items if scope_of(each.nodeid) not in mine])
        items[:] = [each for each in items if scope_of(each.nodeid) in mine]
    if hasattr(config, "workerinput") and config.getoption("--until") is None:
        items.sort(key=lambda item: -expected[scope_of(item.nodeid)])


def expected_seconds(scopes: Iterable[str]) -> dict[str, float]:
    """Returns the recorded seconds of each scope, or those that are assumed."""
    seconds = json.loads(FILE.read_text(encoding="utf-8"))
    known = {scope.partition("::")[0] for scope in seconds}
    return {scope: _expected(scope, seconds, known) for scope in scopes}


def shard(text: str) -> tuple[int, int]:
    """Returns the number of a shard, and the number of shards.

    Raises:
        ValueError: if the text is not of the form K/N with K from 1 to N.
    """
    number, _, count = text.partition("/")
    if not 1 <= int(number) <= int(count):
        raise ValueError(f"{text}: the number of a shard is from 1 to {count}")
    return int(number), int(count)


def shards(expected: dict[str, float], count: int) -> list[set[str]]:
    """Splits the scopes into parts of about the same length: each scope, the longest first, is added to the shortest
    part.
    """
    parts: list[set[str]] = [set() for _ in range(count)]
    lengths = [0.0] * count
    for scope in sorted(expected, key=lambda each: (-expected[each], each)):
        shortest = lengths.index(min(lengths))
        parts[shortest].add(scope)
        lengths[shortest] += expected[scope]
    return parts


def scope_of(nodeid: str) -> str:
    """Returns the class or module of a test, by the rule of `--dist loadscope`."""
    return nodeid.rsplit("::", 1)[0]


def _expected(scope: str, seconds: dict[str, float], known: set[str]) -> float:
    short = 0.0 if scope.partition("::")[0] in known else _UNKNOWN_SECONDS
    return seconds.get(scope, short)


class Keeper:
    """Adds up the seconds of each scope, and records them at the end of the run."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[scope_of(report.nodeid)] += report.duration

    def pytest_sessionfinish(self) -> None:
        long = {scope: round(took, 1) for scope, took in self._seconds.items() if took >= _LEAST_SECONDS}
        FILE.write_text(json.dumps(dict(sorted(long.items())), indent=1) + "\n", encoding="utf-8")
