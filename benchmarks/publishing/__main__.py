"""Times changes that become visible at one moment: `python -m benchmarks.publishing`.

First, a file is added to each of some tables by a commit, and to each of them on a branch, whose publication is timed.
Then a dbt project is built with each value of `publish`, by processes that share a kept Spark.
"""

from __future__ import annotations

import argparse
import os
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

from benchmarks.reuse.warehouse import opened
from dbt.adapters.silt.engine.catalog.names import RelationName
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, Metadata, Protocol
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit

REPETITIONS: Final = 5
MODES: Final = ("at_once", "after_tests")
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
    given = parser.parse_args(arguments)
    table = Table("work", "one by one", "at one moment", "times", title=f"median seconds of {REPETITIONS}")
    with tempfile.TemporaryDirectory() as folder:
        one_by_one, published = commits(Path(folder) / "commits", given.tables)
        table.add_row(f"commits of {given.tables} tables", *shown(one_by_one, published))
        one_by_one, published = builds(Path(folder) / "project", given.models, given.rows)
        table.add_row(f"dbt build of {given.models} tables", *shown(one_by_one, published))
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


def builds(folder: Path, models: int, rows: int) -> tuple[float, float]:
    """Returns the seconds of builds with each value of `publish`, in turns; the first two warm Spark up.

    Raises:
        RuntimeError: if a table is missing.
        CalledProcessError: if a build fails.
    """
    (folder / "models").mkdir(parents=True)
    for name, text in _PROJECT.items():
        (folder / name).write_text(text)
    for number in range(models):
        (folder / "models" / f"m{number}.sql").write_text(_MODEL.format(number=number, rows=rows))
    seconds: dict[str, list[float]] = {mode: [] for mode in MODES}
    for _ in range(REPETITIONS + 1):
        for mode in MODES:
            seconds[mode].append(build(folder, mode))
            check(folder, models)
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
