"""Real processes, killed at random moments while they publish rows, tables, views and functions together."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.publication.processes import kill_many

KILLS = 4


def test_all_names_show_the_same_transaction_after_each_kill(tmp_path: Path) -> None:
    killed = kill_many(str(tmp_path / "warehouse"), KILLS, seed=3)
    assert killed.steps.total() == KILLS and killed.cuts > KILLS and killed.transactions > 2


@pytest.mark.long
def test_all_names_show_the_same_transaction_after_many_kills(tmp_path: Path) -> None:
    killed = kill_many(str(tmp_path / "warehouse"), 100, seed=4)
    assert killed.transactions > 50 and len(killed.steps) > 5
