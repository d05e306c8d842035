"""Lets the longest tests begin first, by the seconds that an earlier run took; `--keep-durations` writes them down.

A worker gets tests in scopes, a class or a module at a time. A long scope that begins last keeps one worker busy while
the other has nothing left.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest

FILE = Path(__file__).with_name("durations.json")
_LEAST_SECONDS = 0.5
"""Shorter scopes are not written down: they come last, in the order of their names."""
_UNKNOWN_SECONDS = 5.0
"""What a scope of a file that no run has seen is taken for."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--keep-durations", action="store_true", help=f"write the seconds of each scope to {FILE.name}")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--keep-durations") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Keeper(), "durations-keeper")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sorts the tests of a worker; a run in one process keeps the order of its files."""
    if hasattr(config, "workerinput"):
        seconds = json.loads(FILE.read_text(encoding="utf-8"))
        known = {scope.partition("::")[0] for scope in seconds}
        items.sort(key=lambda item: -_expected(scope_of(item.nodeid), seconds, known))


def scope_of(nodeid: str) -> str:
    """The class or module of a test, as `--dist loadscope` takes it."""
    return nodeid.rsplit("::", 1)[0]


def _expected(scope: str, seconds: dict[str, float], known: set[str]) -> float:
    short = 0.0 if scope.partition("::")[0] in known else _UNKNOWN_SECONDS
    return seconds.get(scope, short)


class Keeper:
    """Adds up the seconds of each scope, and writes them down when the run ends."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[scope_of(report.nodeid)] += report.duration

    def pytest_sessionfinish(self) -> None:
        long = {scope: round(took, 1) for scope, took in self._seconds.items() if took >= _LEAST_SECONDS}
        FILE.write_text(json.dumps(dict(sorted(long.items())), indent=1) + "\n", encoding="utf-8")
