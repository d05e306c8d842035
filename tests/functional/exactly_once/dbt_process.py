"""dbt as a process of its own on the project beside this file, to be killed and run again."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
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
"""What hard_deletes writes from the clock: whether it is set is compared, not when."""


@dataclass(frozen=True)
class Workplace:
    """A copy of the project, and the folder whose `warehouse` it builds."""

    root: Path
    house: Path | None = None

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
        """Another copy of the project that builds the same warehouse."""
        shutil.copytree(PROJECT, root / "project")
        return Workplace(root, self.house or self.root)

    def start(self, run_id: str, round_: int, *arguments: str) -> subprocess.Popen[bytes]:
        """Starts `dbt build` in a process group of its own, Spark's JVM included."""
        environment = os.environ | {
            "SILT_TEST_WAREHOUSE": str(self.warehouse),
            "SILT_TEST_RUN_ID": run_id,
            "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
        }
        project = str(self.root / "project")
        with (self.root / "dbt.log").open("ab") as log:
            return subprocess.Popen(
                [
                    *(str(Path(sys.executable).with_name("dbt")), "--no-use-colors", "build"),
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
        """Runs `dbt build` to its end; its exit code."""
        return self.start(run_id, round_, *arguments).wait(timeout=300)

    def build_and_kill(self, run_id: str, round_: int, after_seconds: float) -> bool:
        """Runs `dbt build` and kills it and its JVM after that time; whether it was still running."""
        process = self.start(run_id, round_)
        deadline = time.monotonic() + after_seconds
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        alive = process.poll() is None
        if alive:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=60)
        return alive

    def rows(self) -> dict[str, list[str]]:
        """The rows of each table as another engine reads them, sorted, without what the clock decides."""
        return {table: self._rows(table) for table in TABLES}

    def output(self) -> str:
        return (self.root / "dbt.log").read_text(errors="replace")

    def _rows(self, table: str) -> list[str]:
        rows = DeltaTable(str(self.warehouse / "main" / table)).to_pyarrow_table().to_pylist()
        return sorted(repr(sorted((k, _shown(k, v)) for k, v in row.items())) for row in rows)


def moments(seed: int, count: int, longest_seconds: float, shortest_seconds: float = 0.0) -> list[float]:
    """Random moments, the same for the same seed."""
    chance = random.Random(seed)
    return [chance.uniform(shortest_seconds, longest_seconds) for _ in range(count)]


def _shown(column: str, value: object) -> object:
    return value is not None if column in _CLOCK_COLUMNS else str(value)
