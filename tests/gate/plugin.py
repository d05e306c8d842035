"""Options of pytest for the parts of the gate.

--fast          keeps the tests of the fast set, and fails if it names a test that does not exist
--beyond-fast   keeps the other tests
--until T       starts no test that would probably end after this time, in seconds since 1970; such tests have no result
--journal FILE  notes the collected, the begun and the ended tests
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from tests.durations import expected_seconds, scope_of
from tests.gate.selection import FastSet

ROOT: Final = Path(__file__).parents[2]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fast", action="store_true", help="run the tests of tests/gate/fast.json")
    parser.addoption("--beyond-fast", action="store_true", help="run the tests that are not in tests/gate/fast.json")
    parser.addoption("--until", type=float, metavar="T", help="start no test that would probably end after this time")
    parser.addoption("--journal", type=Path, metavar="FILE", help="note the tests that are collected, begin and end")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--fast") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(MissingNames(), "gate-missing-names")
    if (until := config.getoption("--until")) is not None:
        config.pluginmanager.register(Deadline(until), "gate-deadline")
    if (file := config.getoption("--journal")) is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Journal(file), "gate-journal")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Does not import files without a test of the fast set."""
    if not config.getoption("--fast") or not collection_path.name.startswith("test_"):
        return None
    return collection_path.relative_to(ROOT).as_posix() not in _chosen().tests or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keeps the tests of the fast set, or the others."""
    fast, beyond = config.getoption("--fast"), config.getoption("--beyond-fast")
    if not fast and not beyond:
        return
    is_chosen = {item: _chosen().name_of(item.nodeid) is not None for item in items}
    config.hook.pytest_deselected(items=[item for item in items if is_chosen[item] != fast])
    items[:] = [item for item in items if is_chosen[item] == fast]


@functools.cache
def _chosen() -> FastSet:
    return FastSet.read()


class MissingNames:
    """Fails a run if the fast set names tests that its files do not have; a worker cannot say so."""

    def __init__(self) -> None:
        self._missing: list[str] = []

    def pytest_xdist_node_collection_finished(self, node: Any, ids: Sequence[str]) -> None:
        self._missing = _chosen().missing(ids)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._missing = _chosen().missing([item.nodeid for item in session.items])

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._missing and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        for name in self._missing:
            terminalreporter.write_line(f"tests/gate/fast.json names a test that does not exist; correct it: {name}")


class Deadline:
    """Skips, without a result, the tests that would probably end after a time."""

    def __init__(self, until: float) -> None:
        self._until = until
        self._begun: set[str] = set()
        self._seconds: dict[str, float] = {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._seconds = expected_seconds([scope_of(item.nodeid) for item in session.items])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Says that a test has been run, so that pytest does not run it."""
        scope = scope_of(item.nodeid)
        left = self._until - time.time()
        if left <= (0 if scope in self._begun else self._seconds.get(scope, 0)):
            # The test before it has kept the fixtures of the folders and modules that both are in.
            item.session._setupstate.teardown_exact(nextitem)
            return True
        self._begun.add(scope)
        return None


class Journal:
    """Writes a line for each test that is collected, begins and ends."""

    def __init__(self, file: Path) -> None:
        self._file = file.open("w", encoding="utf-8", buffering=1)
        self._has_collected = False

    def pytest_xdist_node_collection_finished(self, node: Any, ids: Sequence[str]) -> None:
        self._note_collected(ids)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._note_collected([item.nodeid for item in session.items])

    def _note_collected(self, ids: Sequence[str]) -> None:
        if ids and not self._has_collected:
            self._has_collected = True
            for each in ids:
                self._note("collected", each)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._note("begun", nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._note("failed", report.nodeid)
        if report.when == "teardown":
            self._note("ended", report.nodeid)

    def _note(self, event: str, test: str) -> None:
        print(json.dumps([event, test]), file=self._file)
