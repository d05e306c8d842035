"""Threads and processes that write overlapping keys through several doors, with kills."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.histories.key_writers import run


@pytest.mark.long
def test_no_key_is_twice_whoever_writes_it_and_whatever_is_killed(tmp_path: Path) -> None:
    figures = run(tmp_path, 180)
    print(figures)
    assert figures.versions > 0
    assert figures.kills.total() > 0
