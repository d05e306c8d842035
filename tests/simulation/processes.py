"""Runs real processes, or threads of one process, that write to one table in a local folder at the same time.

python -m tests.simulation.processes --writers 4 --commits 200
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from dbt.adapters.silt.engine.kernel.clock import SystemClock
from dbt.adapters.silt.engine.kernel.errors import ConcurrentModificationError, ConcurrentTransactionError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.storage.object_store import ObjectStore
from dbt.adapters.silt.engine.kernel.storage.store import PutResult, Store
from dbt.adapters.silt.engine.kernel.table.actions import SetTransaction
from dbt.adapters.silt.engine.kernel.table.expressions import And, Column, Comparison
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitResult, CommitSettings
from tests.simulation.rows_table import Rows, RowsTable

ACCOUNTS = 40
BALANCE = 1000
_FILES = 8
_PLACE = "place.json"
_SETTINGS = CommitSettings(max_attempts=1000)


@dataclass(frozen=True)
class Outcome:
    """The counts of a run.

    Attributes:
        commits: the units of work, each in its own commit.
        attempts: to commit, of all writers that ended.
        reruns: of statements after a conflict with another commit.
        kills: processes that were killed while they ran.
        most_reruns: the most reruns of one unit.
        upkeeps: commits of upkeep.
    """

    commits: int
    attempts: int
    reruns: int
    kills: int
    most_reruns: int
    seconds: float
    upkeeps: int = 0

    def __str__(self) -> str:
        return (
            f"{self.commits} commits in {self.seconds:.1f} s, {self.attempts} attempts, {self.reruns} reruns "
            f"(at most {self.most_reruns} of one unit), {self.kills} kills, {self.upkeeps} commits of upkeep"
        )


def create(folder: Path) -> None:
    """Creates the table: accounts with a balance, a few in each file."""
    table = _open(folder)
    table.log.store.make_folder(LOG_FOLDER)
    table.create(*(dict.fromkeys(range(first, ACCOUNTS, _FILES), BALANCE) for first in range(_FILES)))


def work(table: RowsTable, writer: int, commits: int, report: Path) -> None:
    """Runs the units of one writer in order; units that are already recorded are skipped.

    Args:
        report: gets a line of JSON for each unit: its number, attempts, reruns.
    """
    done = table.log.snapshot().transaction_version(_app(writer)) or 0
    with report.open("a") as file:
        for unit in range(done + 1, commits + 1):
            committed, reruns = _until_it_lands(table, writer, unit)
            attempts = 0 if committed is None else committed.attempts
            file.write(json.dumps([unit, attempts, reruns]) + "\n")
            file.flush()


def run_threads(folder: Path, writers: int, commits: int) -> Outcome:
    """Runs threads that share one handle of the table."""
    create(folder)
    table, began = _open(folder), time.monotonic()
    on_threads(writers, lambda writer: work(table, writer, commits, _report(folder, writer)))
    return _judged(folder, writers, commits, 0, time.monotonic() - began)


def on_threads(writers: int, live: Callable[[int], None]) -> None:
    """Runs each writer, by its number, on its own thread, and raises the error of the first writer that failed."""
    failures: list[BaseException] = []

    def run(writer: int) -> None:
        try:
            live(writer)
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=run, args=(writer,)) for writer in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def run_processes(folder: Path, writers: int, commits: int, kill_seed: int | None = None) -> Outcome:
    """Runs processes, each with its own handle.

    Args:
        kill_seed: if set, processes are killed at random moments and restarted; each completes some units
            before it is killed again, so that the run ends.
    """
    create(folder)
    began, chance, kills = time.monotonic(), random.Random(kill_seed), 0
    spared = {writer: chance.randrange(commits // 2) for writer in range(writers)}
    running = {writer: _start(folder, writer, commits) for writer in range(writers)}
    try:
        while running:
            time.sleep(0.02 if kill_seed is None else chance.uniform(0.0, 0.2))
            for writer, process in list(running.items()):
                code = process.poll()
                if code == 0:
                    del running[writer]
                elif code is not None:
                    assert code == -signal.SIGKILL, f"writer {writer} ended with {code}"
                    running[writer] = _start(folder, writer, commits)
            ready = [] if kill_seed is None else [each for each in running if _units(folder, each) > spared[each]]
            if ready:
                victim = chance.choice(ready)
                kills += running[victim].poll() is None
                running[victim].kill()
                running[victim].wait()
                spared[victim] = _units(folder, victim) + chance.randrange(commits // 2)
    finally:
        for process in running.values():
            process.kill()
            process.wait()
    return _judged(folder, writers, commits, kills, time.monotonic() - began)


def _judged(folder: Path, writers: int, commits: int, kills: int, seconds: float) -> Outcome:
    """Checks that every unit was applied once, the sum of balances is unchanged, and no version is missing."""
    table = _open(folder)
    snapshot = table.log.snapshot()
    rows = table.rows()
    assert sum(rows[key] for key in range(ACCOUNTS)) == ACCOUNTS * BALANCE
    expected = {_row(writer, unit) for writer in range(writers) for unit in range(1, commits + 1) if unit % 2}
    assert set(rows) == expected | set(range(ACCOUNTS))
    recorded = {writer: snapshot.transaction_version(_app(writer)) for writer in range(writers)}
    assert recorded == dict.fromkeys(range(writers), commits)
    assert snapshot.version == writers * commits
    assert [commit.version for commit in table.log.commits()] == list(range(snapshot.version + 1))
    lines = [json.loads(line) for w in range(writers) for line in _report(folder, w).read_text().splitlines()]
    reruns = [reruns for _, _, reruns in lines]
    return Outcome(
        writers * commits, sum(attempts for _, attempts, _ in lines), sum(reruns), kills, max(reruns), seconds
    )


def _until_it_lands(table: RowsTable, writer: int, unit: int) -> tuple[CommitResult | None, int]:
    """Runs one unit: alternately a blind append, and a transfer, which reads the rows that it changes."""
    reruns = 0
    while True:
        try:
            return _unit(table, writer, unit), reruns
        except ConcurrentTransactionError:
            raise  # no other writer does this writer's units
        except ConcurrentModificationError:
            reruns += 1


def _unit(table: RowsTable, writer: int, unit: int) -> CommitResult:
    txn = SetTransaction(_app(writer), unit)
    if unit % 2:
        return table.append({_row(writer, unit): unit}, txn)
    chance = random.Random(writer * 1_000_003 + unit)
    low = chance.randrange(ACCOUNTS - 1)
    predicate = And((Comparison(">=", Column.of("id"), low), Comparison("<=", Column.of("id"), low + 1)))

    def moved(rows: Rows) -> Rows:
        return {low: rows[low] - 1, low + 1: rows[low + 1] + 1}

    return table.rewrite_all(predicate, moved, "MERGE", txn)


def _start(folder: Path, writer: int, commits: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", __spec__.name, "--work", str(folder), str(writer), str(commits)]
    return subprocess.Popen(command, cwd=Path(__file__).parents[2])


def _open(folder: Path) -> RowsTable:
    return RowsTable(DeltaLog(_store(folder), "bank.accounts", SystemClock()), _SETTINGS)


def keep_in(folder: Path, url: str, options: Mapping[str, str], plain_puts: bool = False) -> None:
    """Puts the table of a run into an object store; the reports stay in the folder.

    Args:
        plain_puts: plants a bug: a commit overwrites an existing file.
    """
    (folder / _PLACE).write_text(json.dumps([url, dict(options), plain_puts]))


def _store(folder: Path) -> Store:
    if not (folder / _PLACE).exists():
        return LocalStore(folder / "accounts")
    url, options, plain_puts = json.loads((folder / _PLACE).read_text())
    return (_PlainPuts if plain_puts else ObjectStore)(url, options).never_reused()


class _PlainPuts(ObjectStore):
    """Omits the condition of a conditional write."""

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        self.put(path, data)
        return PutResult.CREATED


def _report(folder: Path, writer: int) -> Path:
    return folder / f"writer-{writer}.jsonl"


def _units(folder: Path, writer: int) -> int:
    """Returns the number of units that the writer has reported."""
    report = _report(folder, writer)
    return report.read_bytes().count(b"\n") if report.exists() else 0


def _app(writer: int) -> str:
    return f"silt/bank/writer-{writer}"


def _row(writer: int, unit: int) -> int:
    return (writer + 1) * 100_000 + unit


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--writers", type=int, default=4)
    arguments.add_argument("--commits", type=int, default=200)
    arguments.add_argument("--work", nargs=3, metavar=("FOLDER", "WRITER", "COMMITS"), help=argparse.SUPPRESS)
    chosen = arguments.parse_args()
    if chosen.work is not None:
        folder, writer = Path(chosen.work[0]), int(chosen.work[1])
        work(_open(folder), writer, int(chosen.work[2]), _report(folder, writer))
        return
    runs = {
        "threads": lambda folder: run_threads(folder, chosen.writers, chosen.commits),
        "processes": lambda folder: run_processes(folder, chosen.writers, chosen.commits),
        "killed processes": lambda folder: run_processes(folder, chosen.writers, chosen.commits, kill_seed=1),
    }
    for name, run in runs.items():
        with tempfile.TemporaryDirectory() as folder:  # type: ignore[assignment]
            print(f"{chosen.writers} {name}: {run(Path(folder))}", flush=True)  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
