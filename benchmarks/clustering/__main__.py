"""Writes small changes into a clustered table, with OPTIMIZE or upkeep after some of them, and counts files and bytes.

    python -m benchmarks.clustering --rows 200000 --writes 60 --changed 500 --every 3

Each contestant gets the same changes: merges of scattered keys, and appends of neighboring keys. The counts are the
bytes written again for each byte written, and the files that a point query and a range query open. They do not depend
on the speed of the machine. With `--delta-python` and `--delta-jars`, delta-spark runs the same in its own process.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.scan import skipping
from dbt.adapters.silt.engine.kernel.table.actions import AddFile
from dbt.adapters.silt.engine.kernel.table.expressions import And, Column, Comparison, Expression
from dbt.adapters.silt.engine.warehouse import Warehouse
from dbt.adapters.silt.session.spark import SessionSettings, open_session

_KEY: Final = Column.of("id")
_QUERIES: Final = 200
_RANGE: Final = 0.01
_CARE: Final = {
    "optimize": "optimize {}",
    "upkeep": "optimize tables ({}) budget '5 minutes'",
    "without": "select 1 as {}",
}
_DELTA_SPARK: Final = Path(__file__).with_name("delta_spark_process.py")


def statements(table: str, given: argparse.Namespace, scattered: bool, care: str) -> Iterator[str]:
    """Yields the changes of a table, and the statements that take care of it."""
    chosen = random.Random(1)
    size = "" if table.startswith("delta.") else ", 'delta.targetFileSize' = '1mb'"  # a setting of delta-spark
    properties = f"'delta.enableDeletionVectors' = 'true'{size}"
    rows = _rows(f"(id * 7919) % {given.rows}", given.rows)
    yield f"create table {table} using delta cluster by (id) tblproperties ({properties}) as {rows}"
    yield care
    for number in range(1, given.writes + 1):
        first = chosen.randrange(given.rows)
        if scattered:
            key = f"(id * {given.rows // given.changed} + {first}) % {given.rows}"
            yield (
                f"merge into {table} as t using ({_rows(key, given.changed)}) as s on t.id = s.id "
                "when matched then update set * when not matched then insert *"
            )
        else:
            yield f"insert into {table} " + _rows(f"{given.rows + number * given.changed} + id", given.changed)
        if number % given.every == 0:
            yield care
    yield care


def _rows(key: str, number: int) -> str:
    return f"select /*+ coalesce(2) */ {key} as id, uuid() as v, rand() as amount from range({number})"


def report(name: str, log: DeltaLog) -> None:
    """Prints the bytes that were written, and again, and how many files queries open."""
    written, again = _bytes(log)
    point, ranged = _opened(log, 0.0), _opened(log, _RANGE)
    print(
        f"{name:<32} written {written / 1e6:7.1f} MB, again {again / 1e6:7.1f} MB ({again / written:.2f}); "
        f"files {log.snapshot().num_files}; a point query opens {point:.1f}, a range of 1 % {ranged:.1f}",
        flush=True,
    )


def _bytes(log: DeltaLog) -> tuple[int, int]:
    """Returns the bytes of the files that changes have added, and of those that only hold the same rows."""
    counts = {True: 0, False: 0}
    known: set[str] = set()
    for commit in log.commits(0):
        for each in commit.actions:
            if isinstance(each, AddFile) and each.path not in known:
                counts[each.data_change] += each.size
                known.add(each.path)
    return counts[True], counts[False]


def _opened(log: DeltaLog, width: float) -> float:
    snapshot = log.snapshot()
    chosen = random.Random(2)
    top = _most(log)
    opened = 0
    for _ in range(_QUERIES):
        first = chosen.randrange(top)
        opened += skipping.prune(snapshot, _between(first, first + int(width * top))).num_rows
    return opened / _QUERIES


def _between(first: int, last: int) -> Expression:
    return And((Comparison(">=", _KEY, first), Comparison("<=", _KEY, last)))


def _most(log: DeltaLog) -> int:
    return max(int(json.loads(add.stats or "")["maxValues"]["id"]) for add in log.snapshot().add_files())


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--writes", type=int, default=60)
    parser.add_argument("--changed", type=int, default=500)
    parser.add_argument("--every", type=int, default=3)
    parser.add_argument("--only", choices=("scattered", "neighboring"))
    parser.add_argument("--delta-only", action="store_true", help="run delta-spark alone")
    parser.add_argument("--delta-python", help="a Python whose PySpark fits the jars")
    parser.add_argument("--delta-jars", help="the Maven coordinates of delta-spark")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        warehouse = Warehouse(open_session(SessionSettings(master="local[2]", spark_conf={})), folder)
        for kind in (given.only,) if given.only else ("scattered", "neighboring"):
            scattered = kind == "scattered"
            for name, care in () if given.delta_only else _CARE.items():
                _run(warehouse, f"{kind}_{name}", given, scattered, care)
            if given.delta_jars:
                _run_delta_spark(warehouse, Path(folder, f"delta_{kind}"), given, scattered)


def _run(warehouse: Warehouse, name: str, given: argparse.Namespace, scattered: bool, care: str) -> None:
    for statement in statements(name, given, scattered, care.format(name)):
        warehouse.sql(statement).collect()
    [(location,)] = warehouse.sql(f"describe detail {name}").select("location").collect()
    report(name, warehouse.catalog.table_at(str(location)))


def _run_delta_spark(warehouse: Warehouse, folder: Path, given: argparse.Namespace, scattered: bool) -> None:
    folder.mkdir()
    table = f"delta.`{folder / 'table'}`"
    (folder / "statements.json").write_text(json.dumps(list(statements(table, given, scattered, f"optimize {table}"))))
    subprocess.run([given.delta_python, str(_DELTA_SPARK), given.delta_jars, str(folder)], check=True, cwd=folder)
    report(
        f"delta-spark {'scattered' if scattered else 'neighboring'}", warehouse.catalog.table_at(str(folder / "table"))
    )


if __name__ == "__main__":
    main()
