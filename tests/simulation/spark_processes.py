"""Runs processes with Spark, and threads of one session, that append to, merge into, delete from and keep up one table.

python -m tests.simulation.spark_processes --statements 15
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import deltalake
import pyarrow as pa

from dbt.adapters.silt.engine.kernel.clock import SystemClock
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.table.actions import SetTransaction
from dbt.adapters.silt.engine.warehouse import Warehouse, WarehouseSettings
from dbt.adapters.silt.session.spark import SessionSettings, open_session, stop_spark
from tests.simulation.processes import ACCOUNTS, BALANCE, Outcome, on_threads

_SETTINGS = WarehouseSettings(max_commit_attempts=1000, statement_attempts=50)
_SPARK = SessionSettings("local[1]", spark_conf={"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "1"})
VECTORS = "tblproperties ('delta.enableDeletionVectors' = 'true')"
_LONGEST_DELAY = 2.0
_POLL = 0.05


def create(warehouse: Warehouse, properties: str = VECTORS) -> None:
    """Creates the table: accounts with a balance, in one file, so that transfers between them conflict."""
    rows = f"select id, {BALANCE}L as balance from range(0, {ACCOUNTS}, 1, 1)"
    warehouse.sql(f"create table accounts {properties} as {rows}")


def work(warehouse: Warehouse, writer: int, statements: int, report: Path) -> None:
    """Runs all statements of one writer, including those that an earlier process has committed, and upkeep.

    Args:
        report: gets a line of JSON for each: its number, the attempts to commit it, its runs, whether it was skipped.
    """
    with report.open("a") as file:
        for unit in range(1, statements + 1):
            outcome = warehouse.execute(_statement(writer, unit), txn=(_app(writer), unit)).outcome
            assert outcome is not None
            line = [unit, outcome.attempts, outcome.statement_attempts, outcome.skipped]
            file.write(json.dumps(line) + "\n")
            file.flush()
            if unit % 2 == 0:
                warehouse.sql("optimize tables (accounts) budget '1 minute'")


def run_threads(warehouse: Warehouse, folder: Path, writers: int, statements: int) -> Outcome:
    """Runs threads that share one session.

    Args:
        warehouse: at `folder / "warehouse"`.
    """
    create(warehouse)
    began = time.monotonic()
    on_threads(writers, lambda writer: work(warehouse, writer, statements, _report(folder, writer)))
    return _judged(folder, writers, statements, 0, time.monotonic() - began)


def run_processes(folder: Path, writers: int, statements: int, kills: int = 0, seed: int = 0) -> Outcome:
    """Runs processes, each with its own Spark, on a table that `create` has created.

    Args:
        kills: how many times one of them, with its Spark, is killed at a random moment of a statement, and started
            again from its first statement.
    """
    began, chance, killed = time.monotonic(), random.Random(seed), 0
    running = {writer: _start(folder, writer, statements) for writer in range(writers)}
    try:
        while running:
            time.sleep(_POLL)
            for writer, process in list(running.items()):
                if process.poll() is not None:
                    assert process.returncode == 0, f"writer {writer} ended with {process.returncode}"
                    del running[writer]
            victims = [writer for writer in running if _may_be_killed(folder, writer, killed + 1, kills, statements)]
            if killed < kills and victims:
                victim = chance.choice(victims)
                time.sleep(chance.uniform(0.0, _LONGEST_DELAY))
                if running[victim].poll() is None:
                    _kill(running[victim])
                    killed += 1
                    running[victim] = _start(folder, victim, statements)
    finally:
        for process in running.values():
            _kill(process)
    return _judged(folder, writers, statements, killed, time.monotonic() - began)


def _may_be_killed(folder: Path, writer: int, number: int, kills: int, statements: int) -> bool:
    """Returns whether a kill is due; kills are spread over all of the writer's statements."""
    lines = [json.loads(line) for line in _lines(folder, writer)]
    furthest = max((line[0] for line in lines), default=0)
    return bool(furthest * (kills + 1) >= number * statements and lines[-1][0] == furthest < statements)


def _judged(folder: Path, writers: int, statements: int, kills: int, seconds: float) -> Outcome:
    """Checks that every statement was applied once, by the rows, the log and the reports."""
    units = [(writer, unit) for writer in range(writers) for unit in range(1, statements + 1)]
    path = folder / "warehouse" / "main" / "accounts"
    reader = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(path))
    rows = pa.table(reader.execute("select id, balance from t")).to_pylist()
    assert sorted((row["id"], row["balance"]) for row in rows) == sorted(_expected(units).items())
    commits = list(DeltaLog(LocalStore(path), "accounts", SystemClock()).commits())
    upkeeps = sum(commit.info.operation == "OPTIMIZE" for commit in commits)
    landed = [action for commit in commits for action in commit.actions if isinstance(action, SetTransaction)]
    assert Counter((each.app_id, each.version) for each in landed) == Counter((_app(w), unit) for w, unit in units)
    done = {
        (writer, *line) for writer in range(writers) for line in map(json.loads, _lines(folder, writer)) if not line[3]
    }
    assert len(done) == len({each[:2] for each in done})
    reruns = [runs - 1 for _, _, _, runs, _ in done]
    return Outcome(len(units), sum(each[2] for each in done), sum(reruns), kills, max(reruns), seconds, upkeeps)


def _statement(writer: int, unit: int) -> str:
    """Returns, in turn, an append, a transfer between two accounts, and a deletion of the last append."""
    if unit % 3 == 1:
        return f"insert into accounts values ({_row(writer, unit)}, {unit})"
    if unit % 3 == 0:
        return f"delete from accounts where id = {_row(writer, unit - 2)}"
    source, target = _transfer(writer, unit)
    return (
        f"merge into accounts using (values ({source}L, -1L), ({target}L, 1L)) s(id, delta) on accounts.id = s.id "
        "when matched then update set balance = accounts.balance + s.delta"
    )


def _expected(units: list[tuple[int, int]]) -> dict[int, int]:
    """Returns the rows after all statements, which do not depend on the order of the writers."""
    rows, last = dict.fromkeys(range(ACCOUNTS), BALANCE), max(unit for _, unit in units)
    for writer, unit in units:
        if unit % 3 == 1 and unit + 2 > last:
            rows[_row(writer, unit)] = unit
        elif unit % 3 == 2:
            for account, delta in zip(_transfer(writer, unit), (-1, 1), strict=True):
                rows[account] += delta
    return rows


def _transfer(writer: int, unit: int) -> tuple[int, int]:
    source, target = random.Random(writer * 1_000_003 + unit).sample(range(ACCOUNTS), 2)
    return source, target


def _row(writer: int, unit: int) -> int:
    return (writer + 1) * 100_000 + unit


def _app(writer: int) -> str:
    return f"silt/bank/writer-{writer}"


def _report(folder: Path, writer: int) -> Path:
    return folder / f"writer-{writer}.jsonl"


def _lines(folder: Path, writer: int) -> list[str]:
    """Returns the lines of the writer's report, each of which is written immediately."""
    report = _report(folder, writer)
    return report.read_text().splitlines() if report.exists() else []


def _start(folder: Path, writer: int, statements: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.simulation.spark_processes", "--work", str(folder), str(writer)]
    # Its own process group, so that a kill ends its Spark, too.
    return subprocess.Popen(
        [*command, "--statements", str(statements)], cwd=Path(__file__).parents[2], start_new_session=True
    )


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--statements", type=int, default=15, help="of each writer")
    arguments.add_argument("--work", nargs=2, metavar=("FOLDER", "WRITER"), help=argparse.SUPPRESS)
    chosen = arguments.parse_args()
    if chosen.work is not None:
        folder, writer = Path(chosen.work[0]), int(chosen.work[1])
        work(_open(folder), writer, chosen.statements, _report(folder, writer))
        stop_spark()
        return
    with (
        tempfile.TemporaryDirectory() as first,
        tempfile.TemporaryDirectory() as second,
        tempfile.TemporaryDirectory() as third,
    ):
        threads, processes, killed = Path(first), Path(second), Path(third)
        print(f"4 threads: {run_threads(_open(threads), threads, 4, chosen.statements)}", flush=True)
        create(_open(processes), properties="")
        create(_open(killed))
        stop_spark()
        print(f"2 processes: {run_processes(processes, 2, chosen.statements)}", flush=True)
        print(f"2 killed processes: {run_processes(killed, 2, chosen.statements, kills=6)}", flush=True)


def _open(folder: Path) -> Warehouse:
    return Warehouse(open_session(_SPARK), str(folder / "warehouse"), settings=_SETTINGS)


if __name__ == "__main__":
    main()
