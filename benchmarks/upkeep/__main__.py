"""Merges small changes into a table, with upkeep after some of them and without, and reads it next to a fresh table.

    python -m benchmarks.upkeep --rows 1000000 --merges 1000 --changed 1000 --every 10

The changed keys are scattered over the table, or neighbours; a tenth of them is new. The table has deletion vectors.
The fresh table is ordered by its key: a table that is clustered by it is kept up in that order, another one is not.
With `--folder`, the tables are kept, and a second call only reads them again, for example when the machine is idle.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.clustering import delta_spark_process
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.actions import AddFile
from dbt.adapters.silt.engine.warehouse import Warehouse
from dbt.adapters.silt.session.spark import SessionSettings, open_session

_READS: Final = 9
_DEFINITION: Final = "using delta tblproperties ('delta.enableDeletionVectors' = 'true')"
_CLUSTERED: Final = _DEFINITION.replace("using delta", "using delta cluster by (id)")
_AUTO: Final = _DEFINITION.replace(")", ", 'delta.autoOptimize.autoCompact' = 'true')")
_DELTA_SPARK: Final = Path(delta_spark_process.__file__)
_COURSES: Final = tuple(
    f"{keys}_{care}" for keys in ("scattered", "neighbouring") for care in ("with", "without", "clustered")
)
_COLUMNS: Final = "id, uuid() as v, cast(id % 1000 as double) as amount"


@dataclass
class Course:
    """A table while it is changed.

    Attributes:
        location: its folder, if delta-spark writes it.
        merge: the median seconds of a merge.
        upkeep: the seconds of all upkeep.
    """

    warehouse: Warehouse
    name: str
    location: str = ""
    merge: float = 0.0
    upkeep: float = 0.0

    @property
    def log(self) -> DeltaLog:
        if self.location:
            return self.warehouse.catalog.table_at(self.location)
        return self.warehouse.catalog.table(RelationName("silt", "main", self.name))

    @property
    def table(self) -> str:
        return f"delta.`{self.location}`" if self.location else self.name

    def run(self, rows: int, merges: int, changed: int, every: int, scattered: bool) -> None:
        """Creates the table, and merges changes into it."""
        definition = _CLUSTERED if self.name.endswith("_clustered") else _DEFINITION
        create, *changes = statements(self.table, rows, merges, changed, scattered, definition)
        self.warehouse.sql(create)
        seconds = []
        for number, merge in enumerate(changes, 1):
            seconds.append(timed(lambda merge=merge: self.warehouse.sql(merge)))
            if every and number % every == 0:
                self.upkeep += timed(self._keep_up)
            if number % 100 == 0:
                print(f"{self.name}: {number} of {merges} merges", file=sys.stderr, flush=True)
        self.merge = statistics.median(seconds)

    def run_delta_spark(self, python: str, jars: str, given: Sequence[str]) -> None:
        """Runs the statements by delta-spark, whose automatic compaction the table asks for."""
        folder = Path(self.location).parent
        folder.mkdir(exist_ok=True)
        (folder / "statements.json").write_text(json.dumps(given))
        took = timed(
            lambda: subprocess.run([python, str(_DELTA_SPARK), jars, str(folder)], check=True, cwd=folder) and None
        )
        self.merge = took / len(given)

    def _keep_up(self) -> None:
        self.warehouse.sql(f"optimize tables ({self.name}) budget '5 minutes'")

    def written(self, by_upkeep: bool) -> int:
        """The bytes of the files that the merges have added, or that upkeep has."""
        known: set[str] = set()
        total = 0
        for commit in self.log.commits():
            adds = [each for each in commit.actions if isinstance(each, AddFile)]
            new = [each for each in adds if each.path not in known and each.data_change is not by_upkeep]
            total += sum(each.size for each in new) if commit.version else 0
            known |= {each.path for each in adds}
        return total


def statements(table: str, rows: int, merges: int, changed: int, scattered: bool, definition: str) -> Iterator[str]:
    """Yields the statements that create a table and merge changes into it."""
    yield f"create table {table} {definition} as select {_COLUMNS} from range({rows})"
    chosen = random.Random(1)
    for number in range(1, merges + 1):
        first = chosen.randrange(rows)
        old = f"(id * {rows // changed} + {first}) % {rows}" if scattered else f"(id + {first}) % {rows}"
        key = f"if(id % 10 = 0, {rows} + {number} * {changed} + id, {old})"
        source = f"select distinct id, uuid() as v, 0.5D as amount from (select {key} as id from range({changed}))"
        on = f"merge into {table} as t using ({source}) as s on t.id = s.id"
        yield f"{on} when matched then update set * when not matched then insert *"


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def read_times(warehouse: Warehouse, name: str, rows: int) -> tuple[float, float]:
    """Returns the median seconds of a full read and of a point query."""
    full = [
        timed(lambda: warehouse.sql(f"select sum(amount), max(v), count(*) from {name}").collect())
        for _ in range(_READS)
    ]
    point = [
        timed(lambda at=at: warehouse.sql(f"select * from {name} where id = {at * rows // 10}").collect())
        for at in range(_READS)
    ]
    return statistics.median(full), statistics.median(point)


def report(course: Course, rows: int) -> None:
    """Prints the reads next to a fresh table of the same rows, and the bytes written by merges and by upkeep."""
    fresh = f"{course.name}_fresh"
    course.warehouse.sql(f"create or replace table {fresh} as select * from {course.table} order by id")
    pairs = list(zip(*[read_times(course.warehouse, name, rows) for name in (fresh, course.table) * 2], strict=True))
    full, point = (min(times[1::2]) / min(times[::2]) for times in pairs)
    merged, again = course.written(by_upkeep=False), course.written(by_upkeep=True)
    files = course.log.snapshot().num_files
    print(
        f"{course.name:<22} full read {full:.2f}, point query {point:.2f} of a fresh table; "
        f"written again {again / merged:.2f} of {merged / 1e6:.1f} MB; files {files}; "
        f"merge {course.merge * 1000:.0f} ms; upkeep {course.upkeep:.1f} s",
        flush=True,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--merges", type=int, default=1000)
    parser.add_argument("--changed", type=int, default=1000)
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--only", choices=_COURSES, nargs="*", default=_COURSES)
    parser.add_argument("--delta-python", help="a Python whose PySpark fits the jars")
    parser.add_argument(
        "--delta-jars", help="the Maven coordinates of delta-spark, whose automatic compaction runs too"
    )
    parser.add_argument("--folder", help="keep the tables here; a table that exists is only read again")
    given = parser.parse_args(arguments)
    with nullcontext(given.folder) if given.folder else tempfile.TemporaryDirectory() as folder:
        Path(folder).mkdir(exist_ok=True)
        warehouse = Warehouse(open_session(SessionSettings(master="local[2]", spark_conf={})), folder)
        for course, run in courses(warehouse, Path(folder), given):
            times = Path(folder) / f"{course.name}.json"
            if times.exists():
                course.merge, course.upkeep = json.loads(times.read_text())
            else:
                run()
                times.write_text(json.dumps([course.merge, course.upkeep]))
            report(course, given.rows)


def courses(
    warehouse: Warehouse, folder: Path, given: argparse.Namespace
) -> Iterator[tuple[Course, Callable[[], None]]]:
    """Yields the tables, each with what writes it."""
    sizes = (given.rows, given.merges, given.changed)
    for name in given.only:
        course = Course(warehouse, name)
        every = 0 if name.endswith("_without") else given.every
        yield course, partial(course.run, *sizes, every, name.startswith("scattered"))
    for name in ("scattered", "neighbouring") if given.delta_jars else ():
        course = Course(warehouse, f"{name}_delta_spark", f"{folder}/{name}_delta_spark/table")
        work = list(statements(course.table, *sizes, name == "scattered", _AUTO))
        yield course, partial(course.run_delta_spark, given.delta_python, given.delta_jars, work)


if __name__ == "__main__":
    main()
