"""Times the hash by which a rebuild to the same rows is recognised: `python -m benchmarks.content_hash`.

Two sessions create the same table from a stored table in turn: with the facts of a build, whose commit records the
hash of all rows, and without them. Both write the same rows.
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
from typing import Final

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from benchmarks.data import Rows
from dbt.adapters.silt.engine.catalog.names import RelationName
from dbt.adapters.silt.engine.commands.writing import content
from dbt.adapters.silt.engine.kernel.log.builds import Build
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


@dataclass(frozen=True)
class Creator:
    """A session that creates a copy of the stored table.

    Attributes:
        build: the build whose facts and hash the commit records, if any.
    """

    name: str
    house: Warehouse
    build: Build | None

    def create(self, turn: int) -> Timing:
        """Creates a table.

        Raises:
            RuntimeError: if the commit records a hash without a build, or no hash with a build.
        """
        table = f"{self.name}_{turn}"
        began, used = time.perf_counter(), processor_seconds(os.getpid())
        self.house.execute(f"create table {table} as select * from stored", build=self.build)
        timing = Timing(time.perf_counter() - began, processor_seconds(os.getpid()) - used)
        log = self.house.catalog.table(RelationName("silt", "main", table))
        if (content.INFO_KEY in next(iter(log.newest_commits())).info.extra) != (self.build is not None):
            raise RuntimeError(f"{table} was created in another way than intended")
        self.house.sql(f"drop table {table}")
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


def creators(spark: SparkSession, folder: Path, rows: int) -> tuple[Creator, Creator]:
    """Stores the rows, and returns the creator without a hash and the creator with the hash."""
    house = Warehouse(spark, str(folder))
    house.sql(f"create table stored as {Rows(0, rows, FILES).sql}")
    other = house.for_session(spark.newSession())
    return Creator("plain", house, None), Creator("hashed", other, Build("a model", "its code"))


def measured(
    pair: Sequence[Creator], repetitions: int, show: Callable[[int], None] = lambda _: None
) -> list[list[Timing]]:
    """Returns the timings of each creator, which take turns and change places; the first turn is not counted."""
    found: list[list[Timing]] = [[] for _ in pair]
    for turn in range(repetitions + 1):
        order = list(enumerate(pair))
        for at, creator in order if turn % 2 else reversed(order):
            timing = creator.create(turn)
            found[at] += [timing] if turn else []
        show(turn)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the medians, and the median of the paired ratios."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.content_hash", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    given = parser.parse_args(arguments)
    spark = open_session(SessionSettings(master="local[*]", spark_conf={}))
    with tempfile.TemporaryDirectory() as folder:
        plain, hashed = measured(creators(spark, Path(folder), given.rows), given.repetitions)
    table = Table(
        "seconds", "without", "with the hash", "median of the ratios", "all ratios", title=f"{given.rows:,} rows"
    )
    for name in ("clock", "processor"):
        without, with_hash = ([getattr(each, name) for each in found] for found in (plain, hashed))
        ratios = sorted(other / one for one, other in zip(without, with_hash, strict=True))
        medians = [f"{statistics.median(each):.2f}" for each in (without, with_hash)]
        table.add_row(name, *medians, f"{statistics.median(ratios):.3f}", " ".join(f"{each:.2f}" for each in ratios))
    Console(width=120).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
