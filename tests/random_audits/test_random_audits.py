"""Random tests have the same verdict before the commit as afterwards; a comparison with a planted bug differs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.random_audits.__main__ import Compared

ROOT: Final = Path(__file__).parents[2]


def test_the_verdicts_before_the_commit_are_those_of_dbt_test() -> None:
    """The project has a process of its own, like a user's."""
    command = [sys.executable, "-m", "tests.random_audits", "--tables", "2", "--seed", "7"]
    compared = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=600)
    assert compared.returncode == 0, compared.stdout + compared.stderr


def test_another_status_or_number_of_failures_is_a_difference() -> None:
    before = {"a": ("pass", 0), "b": ("fail", 2), "c": ("warn", 1)}
    after = {"a": ("fail", 1), "b": ("fail", 3), "c": ("warn", 1), "only_after": ("pass", 0)}
    assert Compared(before, after).different == ["a: ('pass', 0), then ('fail', 1)", "b: ('fail', 2), then ('fail', 3)"]
