"""Numbers that others have written into a log end no process, stop no command, and leave other tables readable."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def tried(folder: Path, every: int) -> subprocess.CompletedProcess[str]:
    """Runs the attacks in a process of their own, because a number can end it by a signal."""
    command = [sys.executable, "-m", "tests.security.logs.numbers", str(folder), str(every)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1800, check=False)


def test_some_absurd_numbers_in_a_log_are_read_or_refused_safely(tmp_path: Path) -> None:
    done = tried(tmp_path, 19)
    assert done.returncode == 0, done.stdout[-2000:]


@pytest.mark.long
def test_each_absurd_number_in_each_place_of_a_log_is_read_or_refused_safely(tmp_path: Path) -> None:
    done = tried(tmp_path, 1)
    assert done.returncode == 0, done.stdout[-2000:]
