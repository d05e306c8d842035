"""Times how a rebuild to the same rows is recognised: `python -m benchmarks.content_hash`.

Two sessions build the same tables from a stored table in turn: with the facts of a build, so that the new rows are
compared with the table's, and without them. Each turn creates a table, replaces it by other rows, of which the log
knows that they differ, and then twice by these same rows: first the rows of both are hashed, then those of one.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from benchmarks.data import Rows
from dbt.adapters.silt.engine.kernel.log import builds
from dbt.adapters.silt.engine.warehouse import Warehouse
from dbt.adapters.silt.session.spark import SessionSettings, open_session

ROWS: Final = 10_000_000
FILES: Final = 16
REPETITIONS: Final = 5


@dataclass(frozen=True)
class Timing:
    """The elapsed seconds of a statement, and its seconds of processor time, which depend less on other load."""

    clock: float
    processor: float


class Build(NamedTuple):
    """A statement of a turn.

    Attributes:
        more: how many rows it writes beyond the stored rows.
        is_same: whether the table already has the rows.
    """

    name: str
    more: int
    is_same: bool


TURN: Final = (
    Build("create", 0, False),
    Build("replace by other rows", 1, False),
    Build("replace by the same rows", 1, True),
    Build("the same rows, once more", 1, True),
)


@dataclass(frozen=True)
class Builder:
    """A session that builds tables.

    Attributes:
        facts: the facts of the build, if rows are compared.
    """

    name: str
    house: Warehouse
    facts: builds.Build | None

    def turn(self, number: int) -> list[Timing]:
        """Returns the timing of each statement of a turn.

        Raises:
            RuntimeError: if the same rows are not recognised, or other rows are.
        """
        table = f"{self.name}_{number}"
        timings = [self._timed(table, each) for each in TURN]
        self.house.sql(f"drop table {table}")
        return timings

    def _timed(self, table: str, build: Build) -> Timing:
        began, used = time.perf_counter(), processor_seconds(os.getpid())
        rows = f"select * from stored union all select * from stored where id < {build.more}"
        done = self.house.execute(f"create or replace table {table} as {rows}", build=self.facts).outcome
        timing = Timing(time.perf_counter() - began, processor_seconds(os.getpid()) - used)
        if done is None or done.unchanged != (build.is_same and self.facts is not None):
            raise RuntimeError(f"the rows of {table} were compared in another way than intended: {build.name}")
        return timing


def processor_seconds(process: int) -> float:
    """Returns the seconds that a process and its descendants have used: Spark's Java is a child of this process."""
    folder = Path("/proc") / str(process)
    try:
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        children = [int(each) for file in folder.glob("task/*/children") for each in file.read_text().split()]
    except OSError:  # it has just ended
        return 0.0
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(map(processor_seconds, children))


def builders(spark: SparkSession, folder: Path, rows: int) -> tuple[Builder, Builder]:
    """Stores the rows, and returns the session that compares no rows and the session that does."""
    house = Warehouse(spark, str(folder))
    house.sql(f"create table stored as {Rows(0, rows, FILES).sql}")
    other = house.for_session(spark.newSession())
    return Builder("plain", house, None), Builder("compared", other, builds.Build("a model", "its code"))


def measured(
    pair: Sequence[Builder], repetitions: int, show: Callable[[int], None] = lambda _: None
) -> list[list[list[Timing]]]:
    """Returns the timings of each session by turn and statement; the first turn is not counted.

    The sessions take turns and change places.
    """
    found: list[list[list[Timing]]] = [[] for _ in pair]
    for number in range(repetitions + 1):
        order = list(enumerate(pair))
        for at, builder in order if number % 2 else reversed(order):
            timings = builder.turn(number)
            found[at] += [timings] if number else []
        show(number)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the medians, and the medians of the paired ratios."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.content_hash", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    given = parser.parse_args(arguments)
    spark = open_session(SessionSettings(master="local[*]", spark_conf={}))
    with tempfile.TemporaryDirectory() as folder:
        plain, compared = measured(builders(spark, Path(folder), given.rows), given.repetitions)
    table = Table("seconds", "replaced", "compared", "ratio", "of processor time", title=f"{given.rows:,} rows")
    for at, build in enumerate(TURN):
        before, after = ([turn[at] for turn in turns] for turns in (plain, compared))
        clock = [statistics.median(each.clock for each in timings) for timings in (before, after)]
        pairs = list(zip(before, after, strict=True))
        ratio = statistics.median(two.clock / one.clock for one, two in pairs)
        processor = statistics.median(two.processor / one.processor for one, two in pairs)
        table.add_row(build.name, *(f"{each:.2f}" for each in clock), f"{ratio:.2f}", f"{processor:.2f}")
    Console(width=120).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
