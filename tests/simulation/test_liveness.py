"""After the last fault everything ends: each test plants a bug that keeps a process waiting, which is found."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest

from dbt.adapters.silt.engine.catalog.folders import locks
from dbt.adapters.silt.engine.catalog.objects.table_ends import TableEnds
from dbt.adapters.silt.engine.kernel.transaction import attempt
from tests.simulation.simulation import simulate
from tests.simulation.warehouse.oracle import Violation

SEEDS = 100


def first_violation(has_folders: bool = True, start: int = 0) -> str:
    for seed in range(start, start + SEEDS):
        try:
            simulate(seed, has_folders)
        except Violation as violation:
            return str(violation).rpartition("\n")[2]
    pytest.fail(f"{SEEDS} seeds passed")


def test_a_writer_that_waits_for_a_version_forever_is_found() -> None:
    attempt_once = attempt.attempt

    def until_committed(*arguments: Any) -> attempt.Outcome:
        while not isinstance(outcome := attempt_once(*arguments), attempt.Committed):
            pass
        return outcome

    with mock.patch.object(attempt, "attempt", until_committed):
        assert "it does not end" in first_violation()


def test_a_lock_that_stays_after_a_failure_is_found() -> None:
    @contextmanager
    def kept_lock(root: str, folder: str) -> Iterator[None]:
        key = (root, folder)
        with locks._held_changed:
            locks._held_changed.wait_for(lambda: key not in locks._held, locks.TIMEOUT_MS)
        locks._held[key] = 0
        yield
        del locks._held[key]

    with mock.patch.object(locks, "_among_threads", kept_lock):
        assert "not ended after" in first_violation()


def test_a_name_that_stays_after_a_killed_drop_is_found() -> None:
    with mock.patch.object(TableEnds, "settle_if_ended", lambda self, name: False):
        assert "it does not end" in first_violation(has_folders=False, start=19)
