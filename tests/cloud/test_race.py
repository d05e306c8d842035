"""Processes that commit to one table in an object store; and the test finds a commit without its condition."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt.adapters.silt.engine.kernel.errors import SiltError
from tests.cloud.servers import ObjectServer
from tests.simulation.processes import keep_in, run_processes

WRITERS, COMMITS = 4, 10


@pytest.mark.parametrize("kill_seed", [None, 1], ids=["all run to their end", "some are killed"])
def test_each_unit_of_concurrent_processes_is_committed_once(
    server: ObjectServer, tmp_path: Path, kill_seed: int | None
) -> None:
    keep_in(tmp_path, server.store().root, server.options)
    assert run_processes(tmp_path, WRITERS, COMMITS, kill_seed).commits == WRITERS * COMMITS


def test_the_race_finds_commits_without_their_condition(server: ObjectServer, tmp_path: Path) -> None:
    keep_in(tmp_path, server.store().root, server.options, plain_puts=True)
    with pytest.raises((AssertionError, SiltError)):
        run_processes(tmp_path, WRITERS, COMMITS)
