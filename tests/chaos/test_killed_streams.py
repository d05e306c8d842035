"""A process that writes a stream with `format("silt")` is killed repeatedly, and each row is written once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dbt.adapters.silt import engine as silt
from dbt.adapters.silt.engine.datasource.stream_reader import has_limits
from tests.chaos.stream_killed import PART, SITE, TIDY, Moment, variables
from tests.unit.cli.house import House, rows

ROOT = Path(__file__).resolve().parents[2]
MOMENTS = (
    *((PART, 1), ("COMMIT", 1), ("LINKED", 1)),  # of the batch that creates the table
    *(("COMMIT", 2), ("LINK", 1), ("LINKED", 2), (TIDY, 1)),
)
FILES, EACH = 2 * len(MOMENTS), 10
_SECONDS = 300
_TOO_LATE = "Python worker failed to connect back"
"""Spark allows a stream's Python process ten seconds to start, which a busy machine may exceed."""


def run(folder: Path, moment: Moment | None) -> int:
    """Runs the stream and returns its exit code."""
    path = os.pathsep.join([str(folder / "site"), str(ROOT)])
    environment = {**os.environ, **variables(moment), "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-m", "tests.chaos.stream_killed", str(folder / "house"), str(folder / "checkpoint")]
    while True:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            start_new_session=True,
        )
        if done.returncode <= 0 or _TOO_LATE not in done.stderr:
            assert done.returncode <= 0, done.stderr[-4000:]
            return done.returncode


@pytest.mark.long
@pytest.mark.skipif(not has_limits(), reason="this PySpark reads all files in one batch")
def test_each_row_is_written_once_if_the_stream_is_killed_at_each_step(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(SITE)
    (tmp_path / "house").mkdir()
    house = House(tmp_path / "house")
    source = house.create("main.source", rows(0, EACH))
    for number in range(1, FILES):
        house.append(source, rows(number * EACH, EACH))
    for number, (step, n) in enumerate(MOMENTS):
        moment = Moment(step, n, str(tmp_path / f"steps-{number}"))
        assert run(tmp_path, moment) == -signal.SIGKILL, moment
    assert run(tmp_path, None) == 0
    found = silt.read("main.target", warehouse=str(tmp_path / "house"), columns=["id"])["id"].to_pylist()
    assert sorted(found) == list(range(FILES * EACH))
    assert house.catalog.table(house.name("main.target")).snapshot().version == FILES - 1
