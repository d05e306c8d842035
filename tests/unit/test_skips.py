"""The last line of a run shows how many tests were skipped and why."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TWO_REASONS = """
import pytest

@pytest.mark.skipif(True, reason="no jars")
@pytest.mark.parametrize("n", [1, 2])
def test_with_jars(n):
    pass

def test_in_time():
    pytest.skip("too early")

def test_that_runs():
    pass
"""


def last_line(folder: Path, text: str, *options: str) -> str:
    (folder / "test_it.py").write_text(text)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", "--rootdir", ".", "-p", "tests.skips", *options],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return run.stdout.splitlines()[-1]


@pytest.mark.parametrize("options", [(), ("-p", "xdist", "-n", "2")], ids=["one process", "two processes"])
def test_the_last_line_counts_the_skipped_tests_by_reason(tmp_path: Path, options: tuple[str, ...]) -> None:
    assert last_line(tmp_path, TWO_REASONS, *options) == "skipped: 2 (no jars); 1 (too early)"


def test_the_last_line_shows_that_no_test_was_skipped(tmp_path: Path) -> None:
    assert last_line(tmp_path, "def test_that_runs(): pass") == "skipped: nothing"
