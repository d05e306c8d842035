"""This engine's kernel and delta-rs, each in its own process, commit to one table at the same time.

python -m tests.interop.race --commits 100
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.exceptions import CommitFailedError

from dbt.adapters.silt.engine.kernel.clock import SystemClock
from dbt.adapters.silt.engine.kernel.errors import ConcurrentModificationError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, CommitInfo, SetTransaction
from dbt.adapters.silt.engine.kernel.table.expressions import Column, Comparison
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER, decode_path
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitResult, CommitSettings
from tests.simulation.rows_table import Rows, RowsTable

APPENDS, UPDATES = "appends", "updates"
OURS, THEIRS = "ours", "theirs"
_THEIR_FIRST = 1_000_000
_RETRIES = 10_000


@dataclass(frozen=True)
class Outcome:
    """The result of a race: the kernel's commits with their attempts and reruns, and those of delta-rs."""

    ours: int
    theirs: int
    attempts: int
    reruns: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.ours} commits of dbt-silt in {self.attempts} attempts and {self.reruns} reruns, "
            f"{self.theirs} of delta-rs, {self.seconds:.1f} s"
        )


class ParquetRows(RowsTable):
    """Rows in Parquet files, as delta-rs writes them too."""

    def write(self, rows: Rows, data_change: bool = True, **layout: Any) -> AddFile:
        add = super().write(rows, data_change, **layout)
        file = Path(self.log.store.root) / add.path
        pq.write_table(_arrow(rows), file)
        return replace(add, size=file.stat().st_size)

    def read(self, adds: Iterable[AddFile]) -> dict[int, int]:
        found: dict[int, int] = {}
        for add in adds:
            table = pq.read_table(Path(self.log.store.root) / decode_path(add.path))
            rows = dict(zip(table["id"].to_pylist(), table["amount"].to_pylist(), strict=True))
            assert len(rows) == table.num_rows and not rows.keys() & found.keys(), "a row is there twice"
            found |= rows
        return found


def race(folder: Path, kind: str, commits: int) -> Outcome:
    """Runs both sides, and checks the table.

    Args:
        kind: APPENDS: both append rows. UPDATES: delta-rs appends rows, and the kernel adds 1 to all rows of delta-rs.
    """
    table = _open(folder)
    table.log.store.make_folder(LOG_FOLDER)
    table.create({0: 0})
    began = time.monotonic()
    running = [_start(folder, kind, who, commits) for who in (OURS, THEIRS)]
    assert [process.wait() for process in running] == [0, 0]
    seconds = time.monotonic() - began
    _judge(table, kind, commits)
    lines = [json.loads(line) for line in (folder / "ours.jsonl").read_text().splitlines()]
    return Outcome(len(lines), commits, sum(line[0] for line in lines), sum(line[1] for line in lines), seconds)


def work(folder: Path, kind: str, who: str, commits: int) -> None:
    """Runs one side's units when both sides are ready."""
    (folder / f"{who}.ready").touch()
    while not all((folder / f"{each}.ready").exists() for each in (OURS, THEIRS)):
        time.sleep(0.001)
    if who == THEIRS:
        _append_with_delta_rs(folder, commits)
        return
    table = _open(folder)
    with (folder / "ours.jsonl").open("w") as report:
        for unit in range(1, commits + 1):
            committed, reruns = _until_it_lands(table, kind, unit)
            report.write(json.dumps([committed.attempts, reruns]) + "\n")


def _append_with_delta_rs(folder: Path, commits: int) -> None:
    properties = deltalake.CommitProperties(max_commit_retries=_RETRIES)
    for unit in range(commits):
        rows = _arrow({_THEIR_FIRST + unit: 0})
        while True:
            try:
                deltalake.write_deltalake(_path(folder), rows, mode="append", commit_properties=properties)
                break
            except CommitFailedError:
                continue  # delta-rs sometimes counts the table's rows as read by its append, too, and asks for a rerun


def _until_it_lands(table: ParquetRows, kind: str, unit: int) -> tuple[CommitResult, int]:
    reruns = 0
    while True:
        try:
            return _unit(table, kind, unit), reruns
        except ConcurrentModificationError:
            reruns += 1


def _unit(table: ParquetRows, kind: str, unit: int) -> CommitResult:
    txn = SetTransaction("race/ours", unit)
    if kind == APPENDS:
        return table.append({unit: 0}, txn)
    theirs = Comparison(">=", Column.of("id"), _THEIR_FIRST)
    return table.rewrite_all(theirs, lambda rows: {key: n + 1 for key, n in rows.items()}, "UPDATE", txn)


def _judge(table: ParquetRows, kind: str, commits: int) -> None:
    """Checks that each row exists once, and that its value follows from the order of the commits."""
    rows, history = table.rows(), [_operation(table, version) for version in range(2 * commits + 1)]
    assert table.log.snapshot().version == 2 * commits
    ours = range(1, commits + 1) if kind == APPENDS else range(0)
    expected = {0: 0, **dict.fromkeys(ours, 0)}
    appended = [version for version, name in enumerate(history) if name == (THEIRS, "WRITE")]
    assert len(appended) == commits
    for unit, version in enumerate(appended):
        expected[_THEIR_FIRST + unit] = sum(name == (OURS, "UPDATE") for name in history[version:])
    assert rows == expected
    assert Counter(who for who, _ in history[1:]) == {OURS: commits, THEIRS: commits}
    reader = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(table.log.store.root))
    theirs = pa.table(reader.execute("select id, amount from t"))
    assert dict(zip(theirs["id"].to_pylist(), theirs["amount"].to_pylist(), strict=True)) == expected


def _operation(table: ParquetRows, version: int) -> tuple[str, str | None]:
    """Returns the writer of a version, and its operation."""
    (commit,) = table.log.commits(version, version)
    (info,) = (action for action in commit.actions if isinstance(action, CommitInfo))
    return (OURS if "silt" in (info.engine_info or "") else THEIRS, info.operation)


def _arrow(rows: Rows) -> pa.Table:
    return pa.table({"id": pa.array(rows.keys(), pa.int64()), "amount": pa.array(rows.values(), pa.int64())})


def _path(folder: Path) -> Path:
    return folder / "table"


def _open(folder: Path) -> ParquetRows:
    log = DeltaLog(LocalStore(_path(folder)), "race.rows", SystemClock())
    return ParquetRows(log, CommitSettings(max_attempts=_RETRIES))


def _start(folder: Path, kind: str, who: str, commits: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.interop.race", "--work", str(folder), kind, who, "--commits", str(commits)]
    return subprocess.Popen(command, cwd=Path(__file__).parents[2])


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--commits", type=int, default=100, help="of each side")
    arguments.add_argument("--work", nargs=3, metavar=("FOLDER", "KIND", "WHO"), help=argparse.SUPPRESS)
    chosen = arguments.parse_args()
    if chosen.work is not None:
        folder, kind, who = chosen.work
        work(Path(folder), kind, who, chosen.commits)
        return
    for kind in (APPENDS, UPDATES):
        with tempfile.TemporaryDirectory() as folder:
            print(f"{kind}: {race(Path(folder), kind, chosen.commits)}", flush=True)


if __name__ == "__main__":
    main()
