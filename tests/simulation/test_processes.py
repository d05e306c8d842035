"""Writers of one table in a local folder, at the same time. `make processes` runs them for longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation.processes import run_processes, run_threads


def test_units_of_threads_that_share_a_handle_are_applied_once(tmp_path: Path) -> None:
    outcome = run_threads(tmp_path, writers=4, commits=25)
    assert outcome.attempts >= outcome.commits == 100


def test_units_of_processes_are_applied_once(tmp_path: Path) -> None:
    outcome = run_processes(tmp_path, writers=4, commits=25)
    assert outcome.attempts >= outcome.commits == 100


@pytest.mark.long
def test_units_of_killed_and_restarted_processes_are_applied_once(tmp_path: Path) -> None:
    outcome = run_processes(tmp_path, writers=4, commits=25, kill_seed=1)
    assert outcome.kills > 0
