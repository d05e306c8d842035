"""The end of dbt's process: cycles are not collected, and all other exit work is done."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.session.processes import ROOT

PROGRAM = """
import atexit
from dbt.adapters.silt.runs import ending

class Cycle:
    def __init__(self):
        self.own = self
    def __del__(self):
        import os
        os.write(1, b"cycle ")

atexit.register(lambda: print("registered", end=" "))
ending.end_quickly()
Cycle()
file = open("written", "w")
file.write("text")
"""


@pytest.mark.parametrize(
    ("name", "said"), [("dbt", {"registered"}), ("silt", {"registered"}), ("program.py", {"registered", "cycle"})]
)
def test_only_dbt_and_silt_skip_the_collection_of_cycles(name: str, said: set[str], tmp_path: Path) -> None:
    (tmp_path / name).write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, name], cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) == said
    assert (tmp_path / "written").read_text() == "text"
