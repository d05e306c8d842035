"""dbt in separate processes on the project next to this file, concurrent and killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from deltalake import DeltaTable

PROJECT = Path(__file__).parent / "project"
TABLES = (
    "as_table",
    "as_append",
    "as_merge",
    "as_delete_insert",
    "as_insert_overwrite",
    "as_two_steps",
    "as_backfill",
    "hooked",
    "as_snapshot",
    "colours",
)
_CLOCK_COLUMNS = ("dbt_valid_to",)
"""The columns that hard_deletes fills from the clock: whether they are set is compared, not their values."""


@dataclass(frozen=True)
class Workplace:
    """A copy of the project, the folder whose `warehouse` it builds, and the command line of dbt."""

    root: Path
    house: Path | None = None
    program: tuple[str, ...] = ("dbt",)

    @property
    def warehouse(self) -> Path:
        return (self.house or self.root) / "warehouse"

    @classmethod
    def make(cls, root: Path) -> Workplace:
        shutil.copytree(PROJECT, root / "project")
        return cls(root)

    def copy(self, root: Path) -> Workplace:
        shutil.copytree(self.root, root)
        return Workplace(root)

    def beside(self, root: Path) -> Workplace:
        """Returns another copy of the project that builds the same warehouse."""
        shutil.copytree(PROJECT, root / "project")
        return Workplace(root, self.house or self.root)

    def start(self, run_id: str, round_: int, *arguments: str) -> subprocess.Popen[bytes]:
        """Starts `dbt build` in its own process group, including Spark's JVM."""
        environment = os.environ | {
            "SILT_TEST_WAREHOUSE": str(self.warehouse),
            "SILT_TEST_RUN_ID": run_id,
            "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
        }
        project = str(self.root / "project")
        with (self.root / "dbt.log").open("ab") as log:
            return subprocess.Popen(
                [
                    *(str(Path(sys.executable).with_name(self.program[0])), *self.program[1:]),
                    *("--no-use-colors", "build"),
                    *("--project-dir", project, "--profiles-dir", project),
                    *("--vars", json.dumps({"round": round_}), *arguments),
                ],
                cwd=project,
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def build(self, run_id: str, round_: int, *arguments: str) -> int:
        """Runs `dbt build`; returns its exit code."""
        return self.start(run_id, round_, *arguments).wait(timeout=300)

    def has_committed(self, count: int) -> Callable[[], bool]:
        """Returns whether the project's runs have recorded so many commits."""
        journal = self.root / "project" / "target" / "silt_commits.jsonl"
        return lambda: journal.exists() and len(journal.read_bytes().splitlines()) >= count

    def kill_when(self, process: subprocess.Popen[bytes], is_due: Callable[[], bool]) -> None:
        """Kills a process and its JVM as soon as the condition holds; it must not have ended before."""
        while not is_due():
            assert process.poll() is None, self.output()
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait(timeout=60) == -signal.SIGKILL

    def rows(self) -> dict[str, list[str]]:
        """Returns the rows of each table as another engine reads them, sorted, without values from the clock."""
        return {table: self._rows(table) for table in TABLES}

    def output(self) -> str:
        return (self.root / "dbt.log").read_text(errors="replace")

    def _rows(self, table: str) -> list[str]:
        rows = DeltaTable(str(self.warehouse / "main" / table)).to_pyarrow_table().to_pylist()
        return sorted(repr(sorted((k, _shown(k, v)) for k, v in row.items())) for row in rows)


def _shown(column: str, value: object) -> object:
    return value is not None if column in _CLOCK_COLUMNS else str(value)
