"""Times audited writes and builds: `python -m benchmarks.audits`.

Four row tests judge the rows of appends of one percent into a large table, in turns with the same appends into the same
table without tests. Then the sample project is built on two months of flights, with its data tests as audits and with
the tests afterwards, by processes that share a kept Spark; with `--project FOLDER` another project is built so, without
packages and with a profile of its own. `dbt test` afterwards must have the verdicts of the audits.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from benchmarks.publishing.__main__ import sample
from dbt.adapters.silt.engine.audits.audit import Audit, Audits
from dbt.adapters.silt.engine.warehouse import Warehouse

WORKS: Final = ("appends", "sample")
_COLUMNS: Final = (
    "id, id % 1000 as customer, cast(id % 977 as double) as amount, concat('s', id % 5) as status, "
    "date_add(date'2026-01-01', cast(id % 300 as int)) as day"
)
_ROW_TESTS: Final = {
    "not_null": "id is null",
    "positive": "amount < 0",
    "accepted": "status not in ('s0', 's1', 's2', 's3', 's4')",
    "recent": "day < date'2020-01-01'",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the medians."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audits", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--only", choices=WORKS, nargs="+", default=WORKS)
    parser.add_argument("--project", type=Path, metavar="FOLDER", help="build this project instead of the sample")
    given = parser.parse_args(arguments)
    table = Table("work", "without audits", "with audits", "times", title=f"median seconds of {given.repetitions}")
    with tempfile.TemporaryDirectory() as folder:
        if "appends" in given.only:
            without, with_audits = appends(warehouse(Path(folder, "appends")), given.rows, given.repetitions)
            table.add_row(f"{given.rows // 100:,} rows into {given.rows:,}", *shown(without, with_audits))
        if "sample" in given.only:
            place = Path(folder, "project")
            made = sample(place) if given.project is None else unpacked(given.project, place)
            without, with_audits = builds(made, given.repetitions)
            judged, tests = compared_verdicts(made)
            title = f"dbt build of {'the sample project' if given.project is None else given.project.name}"
            table.add_row(f"{title}: {judged} of {tests} tests as audits", *shown(without, with_audits))
    Console(width=100).print(table)
    return 0


def shown(without: float, with_audits: float) -> tuple[str, str, str]:
    return f"{without:.3f}", f"{with_audits:.3f}", f"{with_audits / without:.2f}"


def warehouse(folder: Path) -> Warehouse:
    spark = (
        SparkSession.builder.master("local[2]")  # type: ignore[attr-defined]
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.driver.memory", "2g")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return Warehouse(spark, str(folder))


def appends(house: Warehouse, rows: int, repetitions: int) -> tuple[float, float]:
    """Returns the seconds of an append of one percent without and with audits; the first two warm Spark up.

    The first audited append looks at all rows, and is not counted: the later ones judge the new rows only.

    Raises:
        RuntimeError: if an append is missing.
    """
    seconds: dict[str, list[float]] = {"plain": [], "audited": []}
    for name in seconds:
        house.sql(f"create table {name} as select {_COLUMNS} from range({rows})")
    added = rows // 100
    for number in range(repetitions + 2):
        first = rows + number * added
        for name in sorted(seconds, reverse=bool(number % 2)):
            tests = Audits(tuple(_audit(name, test) for test in _ROW_TESTS)) if name == "audited" else None
            query = f"insert into {name} select {_COLUMNS} from range({first}, {first + added})"
            began = time.perf_counter()
            house.execute(query, audits=tests)
            seconds[name].append(time.perf_counter() - began)
    for name in seconds:
        if house.sql(f"select count(*) from {name}").first()[0] != rows + (repetitions + 2) * added:  # type: ignore[index]
            raise RuntimeError(f"an append to {name} is missing")
    return statistics.median(seconds["plain"][2:]), statistics.median(seconds["audited"][2:])


def _audit(table: str, test: str) -> Audit:
    return Audit(test, f"select id from main.{table} where {_ROW_TESTS[test]}")


def unpacked(project: Path, folder: Path) -> Path:
    """Copies a project, and gives it a profile with a kept Spark; returns its folder."""
    shutil.copytree(project, folder, ignore=shutil.ignore_patterns("target", "logs", "profiles.yml"))
    name = yaml.safe_load((folder / "dbt_project.yml").read_text())["profile"]
    lines = (f"{name}:", "  target: dev", "  outputs:", "    dev:", "      type: silt", "      keep_alive: 5 minutes")
    (folder / "profiles.yml").write_text("\n".join(lines) + "\n")
    return folder


def compared_verdicts(folder: Path) -> tuple[int, int]:
    """Compares the verdicts of the last audited build with `dbt test`; returns how many tests were audits, of how many.

    Raises:
        RuntimeError: if a verdict or a number of failures differs.
        CalledProcessError: if `dbt test` fails.
    """
    audited = _verdicts(folder)
    _dbt(folder, "test", "audited")
    for name, (verdict, _) in _verdicts(folder).items():
        if audited[name][0] != verdict:
            raise RuntimeError(f"{name} is {audited[name][0]} in the build, and {verdict} in `dbt test`")
    return sum(is_audit for _, is_audit in audited.values()), len(audited)


def _verdicts(folder: Path) -> dict[str, tuple[tuple[str, int], bool]]:
    """Returns the status and the failures of each test of the last command, and whether it was an audit."""
    results: list[dict[str, Any]] = json.loads((folder / "target" / "run_results.json").read_text())["results"]
    return {
        each["unique_id"]: ((each["status"], each["failures"]), bool(each["adapter_response"].get("audited")))
        for each in results
        if each["unique_id"].startswith("test.")
    }


def builds(folder: Path, repetitions: int) -> tuple[float, float]:
    """Returns the seconds of builds of the sample project in each mode, in turns; the first two warm Spark up.

    Raises:
        CalledProcessError: if a build fails.
    """
    lines = (folder / "profiles.yml").read_text().rstrip().splitlines()
    at = next(number for number, line in enumerate(lines) if line.strip() == "dev:")
    audited = ["    audited:", *lines[at + 1 :], "      audit: before_commit", "      warehouse: audited"]
    (folder / "profiles.yml").write_text("\n".join([*lines, *audited]) + "\n")
    seconds: dict[str, list[float]] = {"dev": [], "audited": []}
    for _ in range(repetitions + 1):
        for target, found in seconds.items():
            found.append(_build(folder, target))
    return statistics.median(seconds["dev"][1:]), statistics.median(seconds["audited"][1:])


def _build(folder: Path, target: str) -> float:
    began = time.perf_counter()
    _dbt(folder, "build", target)
    return time.perf_counter() - began


def _dbt(folder: Path, command: str, target: str) -> None:
    dbt = [str(Path(sys.executable).with_name("dbt")), "--quiet", command, "--target", target]
    subprocess.run(dbt, cwd=folder, check=True, env={**os.environ, "DBT_PROFILES_DIR": str(folder)})


if __name__ == "__main__":
    sys.exit(main())
