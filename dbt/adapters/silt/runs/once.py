"""Limits messages: a warning to a single occurrence in each dbt command, and reused tests to a line."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.invocation import get_invocation_id

if TYPE_CHECKING:
    from dbt.adapters.silt.engine.builds.passed_tests import PassedTest

logger = AdapterLogger("Silt")

_lock = threading.Lock()
_seen: dict[str, set[str]] = {}
"""The subjects of the command that this process runs, by the command's id."""


def first_time(subject: str) -> bool:
    """Returns whether this is the first call for the subject in this dbt command. Thread-safe."""
    command = str(get_invocation_id())
    with _lock:
        if command not in _seen:
            _seen.clear()
        subjects = _seen.setdefault(command, set())
        if subject in subjects:
            return False
        subjects.add(subject)
        return True


class ReusedTests:
    """Reports the tests of a command that are not run again: a line for each, or on a terminal one line for all."""

    def __init__(self) -> None:
        self._is_on_terminal = sys.stdout.isatty()
        self._lock = threading.Lock()
        self._number = 0

    def note(self, test: str, passed: PassedTest) -> None:
        """Reports a test. Thread-safe."""
        with self._lock:
            self._number += 1
        report = logger.debug if self._is_on_terminal else logger.info
        report(f"{test}: reused: {passed.short}")

    def sum_up(self) -> None:
        """Reports the number of tests at the end of the command."""
        number, self._number = self._number, 0
        if number and self._is_on_terminal:
            has = "1 test was" if number == 1 else f"{number:,} tests were"
            logger.info(f"{has} not run again: nothing has changed since they passed")
