"""The tests of a dbt command that are not run, because their verdict is known."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbt.adapters.events.logging import AdapterLogger

if TYPE_CHECKING:
    import agate

    from dbt.adapters.silt.engine.audits.audit import AuditResult
    from dbt.adapters.silt.engine.builds.passed_tests import PassedTest
    from dbt.adapters.silt.runs.response import SiltResponse

logger = AdapterLogger("Silt")


@dataclass(frozen=True)
class KnownResult:
    """The result of a test that is not run: the response, and the row that dbt reads."""

    response: SiltResponse
    table: agate.Table


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


@dataclass(frozen=True)
class AuditedTest:
    """The verdict of a test on a committed version of a table.

    Attributes:
        result: the verdict.
        write: the response of the write.
    """

    result: AuditResult
    write: SiltResponse


class AuditedTests:
    """The tests of a dbt command that have judged a node's own write; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[str, AuditedTest] = {}

    def note(self, tests: Sequence[str], results: Sequence[AuditResult], write: SiltResponse) -> None:
        """Keeps the verdicts of tests, given by their unique ids, on a write."""
        with self._lock:
            self._found |= {test: AuditedTest(result, write) for test, result in zip(tests, results, strict=True)}

    def take(self, test: str) -> AuditedTest | None:
        """Returns the verdict of a test, given by its unique id, once: if dbt runs it again, its inputs may differ."""
        with self._lock:
            return self._found.pop(test, None)
