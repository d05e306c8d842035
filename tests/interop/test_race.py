"""This engine's kernel and delta-rs on one table at the same time. `make race` runs them for longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.race import APPENDS, UPDATES, race


@pytest.mark.parametrize("kind", [APPENDS, UPDATES])
def test_no_concurrent_commit_of_this_engine_or_delta_rs_is_lost(kind: str, tmp_path: Path) -> None:
    outcome = race(tmp_path, kind, commits=20)
    assert (outcome.ours, outcome.theirs) == (20, 20)
    assert outcome.attempts >= 20
