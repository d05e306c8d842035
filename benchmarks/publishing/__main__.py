"""Times changes that become visible at one moment: `python -m benchmarks.publishing`.

First, a file is added to each of some tables by a commit, and to each of them on a branch, whose publication is timed.
Then a dbt project, and the sample project on two months of flights, are built with each value of `publish`, by
processes that share a kept Spark. Last, a table is read on the branch of a run, and as it is published.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.publishing.reads import reads
from benchmarks.reuse.warehouse import opened
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, Metadata, Protocol
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit

REPETITIONS: Final = 5
MODES: Final = ("at_once", "after_tests")
WORKS: Final = ("commits", "build", "sample", "reads")
_SAMPLE: Final = Path(__file__).resolve().parents[2] / "sample_project"
_SCHEMA: Final = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'
_MODEL: Final = "{{{{ config(materialized='table') }}}} select id + {number} as id from range({rows})"
_PROJECT: Final = {
    "dbt_project.yml": "{name: shop, profile: shop, version: '1.0'}",
    "profiles.yml": "shop: {target: dev, outputs: {dev: {type: silt, threads: 4, keep_alive: 5 minutes}}}",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the medians."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.publishing", description=__doc__)
    parser.add_argument("--tables", type=int, default=50)
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--only", choices=WORKS, nargs="+", default=WORKS)
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    given = parser.parse_args(arguments)
    times = given.repetitions
    table = Table("work", "one by one", "at one moment", "times", title=f"median seconds of {times}")
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        if "commits" in given.only:
            table.add_row(f"commits of {given.tables} tables", *shown(*commits(folder / "commits", given.tables)))
        if "build" in given.only:
            seconds = builds(project(folder / "project", given.models, given.rows), given.models, times)
            table.add_row(f"dbt build of {given.models} tables", *shown(*seconds))
        if "sample" in given.only:
            table.add_row("dbt build of the sample project", *shown(*builds(sample(folder / "sample"), None, times)))
        if "reads" in given.only:
            for name, seconds in reads(folder / "reads", given.rows, times).items():
                table.add_row(f"{name}, published and on a branch", *shown(*seconds))
    Console().print(table)
    return 0


def shown(one_by_one: float, published: float) -> tuple[str, str, str]:
    return f"{one_by_one:.3f}", f"{published:.3f}", f"{published / one_by_one:.2f}"


def commits(folder: Path, tables: int) -> tuple[float, float]:
    """Returns the seconds of commits, and of the publication of a branch, that add a file to each table.

    Raises:
        RuntimeError: if a table has not got all commits.
    """
    folder.mkdir()
    catalog = opened(folder)
    catalog.create_schema("silt", "main")
    names = [RelationName("silt", "main", f"t{number}") for number in range(tables)]
    for name in names:
        create(catalog.new_table(name))
    seconds: list[tuple[float, float]] = []
    for turn in range(REPETITIONS):
        began = time.perf_counter()
        for name in names:
            append(catalog.table(name), f"plain-{turn}")
        one_by_one = time.perf_counter() - began
        branch = catalog.new_branch("silt")
        inside = catalog.on_branch("silt", branch)
        for name in names:
            append(inside.table(name), f"branch-{turn}")
        began = time.perf_counter()
        branch.publish()
        seconds.append((one_by_one, time.perf_counter() - began))
    if any(catalog.table(name).snapshot().files.num_rows != 2 * REPETITIONS for name in names):
        raise RuntimeError("a commit is missing")
    plain, published = zip(*seconds, strict=True)
    return statistics.median(plain), statistics.median(published)


def create(log: DeltaLog) -> None:
    metadata = Metadata(log.clock.new_id(), _SCHEMA)
    changes = Changes(Operation("CREATE TABLE"), metadata=metadata, protocol=Protocol(1, 2))
    commit(log, None, changes, ReadSet(), CommitSettings())


def append(log: DeltaLog, path: str) -> None:
    log.store.put(path, b"rows")
    file = AddFile(path, {}, size=4, modification_time=log.clock.now_ms(), data_change=True)
    commit(log, log.snapshot(), Changes(Operation("WRITE"), (file,)), ReadSet(), CommitSettings())


def project(folder: Path, models: int, rows: int) -> Path:
    """Writes a project of independent tables; returns its folder."""
    (folder / "models").mkdir(parents=True)
    for name, text in _PROJECT.items():
        (folder / name).write_text(text)
    for number in range(models):
        (folder / "models" / f"m{number}.sql").write_text(_MODEL.format(number=number, rows=rows))
    return folder


def sample(folder: Path) -> Path:
    """Copies the sample project, and lands two months of flights; returns its folder.

    Raises:
        CalledProcessError: if the flights cannot be landed.
    """
    made = shutil.ignore_patterns("landing", "warehouse", "target", "logs", "__pycache__")
    shutil.copytree(_SAMPLE, folder, ignore=made)
    text = (folder / "profiles.yml").read_text()
    (folder / "profiles.yml").write_text(f"{text.rstrip()}\n      keep_alive: 5 minutes\n")
    for month in ("1", "2"):
        subprocess.run([sys.executable, "land.py", month], cwd=folder, check=True)
    return folder


def builds(folder: Path, tables: int | None, repetitions: int) -> tuple[float, float]:
    """Returns the seconds of builds with each value of `publish`, in turns; the first two warm Spark up.

    Args:
        tables: the number of tables that the builds make, if it is checked.

    Raises:
        RuntimeError: if a table is missing.
        CalledProcessError: if a build fails.
    """
    seconds: dict[str, list[float]] = {mode: [] for mode in MODES}
    for _ in range(repetitions + 1):
        for mode in MODES:
            seconds[mode].append(build(folder, mode))
            if tables is not None:
                check(folder, tables)
    one_by_one, published = (statistics.median(seconds[mode][1:]) for mode in MODES)
    return one_by_one, published


def build(folder: Path, mode: str) -> float:
    dbt = [str(Path(sys.executable).with_name("dbt")), "--quiet", "build", "--vars", f"silt_publish: {mode}"]
    began = time.perf_counter()
    subprocess.run(dbt, cwd=folder, check=True, env={**os.environ, "DBT_PROFILES_DIR": str(folder)})
    return time.perf_counter() - began


def check(folder: Path, models: int) -> None:
    """Raises RuntimeError if a table is missing."""
    catalog = opened(folder / "warehouse")
    if len(catalog.relations("silt", "main")) != models:
        raise RuntimeError("a table is missing")


if __name__ == "__main__":
    sys.exit(main())
