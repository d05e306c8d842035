"""Measures a project on tables of growing size: `python -m benchmarks.growing [--rows N ...]`.

The project has an incremental model that merges orders by their key, and a table of totals for each customer and day.
Each command is a separate process with an embedded Spark: the first build, a merge of corrected orders (0.1 % of the
rows, in every file), and a table that joins all rows with themselves.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROWS = (1_000_000, 10_000_000, 100_000_000)
PROFILE = """
growing:
  target: dev
  outputs:
    dev:
      type: silt
      spark_conf: {{spark.driver.memory: {memory}, spark.local.dir: {scratch}}}
"""
MODELS = {
    "dbt_project.yml": "name: growing\nprofile: growing\n",
    "models/orders.sql": """
{{ config(materialized='incremental', unique_key='id', incremental_strategy='merge') }}
{% set rows = var('rows') %}
select id * 7919 % {{ rows }} as id, id % ({{ rows }} div 20) as customer,
       date_add(date'2026-01-01', cast(id % 365 as int)) as day,
       cast(rand(7) * 1000 as decimal(12, 2)) as amount, uuid() as note
from range({% if is_incremental() %}{{ rows - rows // 2000 }}, {{ rows + rows // 2000 }}{% else %}{{ rows }}{% endif %})
""",
    "models/totals.sql": """
{{ config(materialized='table') }}
select o.customer, o.day, count(*) as orders, sum(o.amount) as amount, max(p.amount) as largest
from {{ ref('orders') }} o join {{ ref('orders') }} p on o.customer = p.customer and o.day = p.day
group by o.customer, o.day
""",
}


@dataclass
class Peak:
    """The peaks while a command ran, in bytes: memory of its processes, and files for rows in transit."""

    memory: int = 0
    scratch: int = 0


@dataclass(frozen=True)
class Measured:
    """A command: its elapsed seconds, and its peaks."""

    name: str
    clock: float
    peak: Peak


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints a table for all sizes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growing", description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=list(ROWS))
    parser.add_argument("--memory", default="4g", help="of Spark (`spark.driver.memory`)")
    given = parser.parse_args(arguments)
    columns = ("rows", "command", "seconds", "memory", "for sorting and joining", "warehouse")
    table = Table(*columns, title=f"{os.cpu_count()} processors, spark.driver.memory: {given.memory}")
    for rows in given.rows:
        with tempfile.TemporaryDirectory() as folder:
            for each in measure(Path(folder), rows, given.memory):
                warehouse = _mebibytes(_bytes_below(Path(folder, "warehouse")))
                peak = (_mebibytes(each.peak.memory), _mebibytes(each.peak.scratch))
                table.add_row(f"{rows:,}", each.name, f"{each.clock:.0f}", *peak, warehouse)
    Console(width=130).print(table)
    return 0


def measure(folder: Path, rows: int, memory: str) -> Iterator[Measured]:
    """Builds the project in a new folder, then runs it with a day of changes."""
    scratch = folder / "scratch"
    files = {**MODELS, "profiles.yml": PROFILE.format(memory=memory, scratch=scratch)}
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    scratch.mkdir()
    for name, model in (("first build", "orders"), ("merge of 0.1 %", "orders"), ("join and totals", "totals")):
        yield _run(name, [*_DBT, "run", "--select", model, "--vars", f"rows: {rows}"], folder, scratch)


_DBT = (str(Path(sys.executable).parent / "dbt"), "--quiet")


def _run(name: str, command: Sequence[str], folder: Path, scratch: Path) -> Measured:
    began = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder)
    with _watched(process.pid, scratch) as peak:
        code = process.wait()
    if code:
        raise SystemExit(f"{name}: dbt ended with {code}")
    return Measured(name, time.perf_counter() - began, peak)


@contextmanager
def _watched(pid: int, scratch: Path) -> Iterator[Peak]:
    peak, ended = Peak(), threading.Event()

    def watch() -> None:
        while not ended.wait(0.5):
            peak.memory = max(peak.memory, sum(map(_resident, _family(pid))))
            peak.scratch = max(peak.scratch, _bytes_below(scratch))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peak
    finally:
        ended.set()
        watcher.join()


def _family(pid: int) -> Iterator[int]:
    """Returns a process and all of its descendants."""
    yield pid
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in _content(thread).split():
            yield from _family(int(child))


def _resident(pid: int) -> int:
    fields = _content(Path(f"/proc/{pid}/statm")).split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") if fields else 0


def _content(path: Path) -> str:
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""  # the process has ended


def _bytes_below(folder: Path) -> int:
    listed = shutil.which("du")
    assert listed is not None
    done = subprocess.run([listed, "-sk", str(folder)], capture_output=True, text=True, check=False)
    return int(done.stdout.split()[0]) * 1024 if done.stdout else 0


def _mebibytes(size: int) -> str:
    return f"{size / 2**20:,.0f} MiB"


if __name__ == "__main__":
    sys.exit(main())
