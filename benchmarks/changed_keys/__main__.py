"""Times a table of totals that follows small changes of its input: `python -m benchmarks.changed_keys`.

0.1 % of the input's rows are changed, with neighbouring keys or with keys in every file. Then the changed keys are
replaced, all rows are computed again, and the files of the change are read; the tables must be equal.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.commands.reading import scan
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.scan.change_feed import changes_after
from dbt.adapters.silt.engine.warehouse import Warehouse
from dbt.adapters.silt.session.spark import SessionSettings, open_session

ROWS: Final = 10_000_000
REPETITIONS: Final = 3
PER_KEY: Final = 10
SHARE: Final = 1_000
TOTALS: Final = "select customer, count(*) as orders, sum(amount) as total, max(note) as note from orders group by 1"
KEYS: Final = "changed keys (customer)"
PLACES: Final = {
    "neighbouring keys": "id >= {start} and id < {start} + {count}",
    "keys in every file": f"id % {SHARE} = {{turn}}",
}


class Shop:
    """A table of orders and its totals by customer, which follow changes or are computed again."""

    def __init__(self, spark: SparkSession, folder: Path, rows: int) -> None:
        self.spark, self.rows, self.house = spark, rows, Warehouse(spark, str(folder))
        self.house.sql(
            "create table orders tblproperties (delta.enableDeletionVectors = true) as "
            f"select id, id div {PER_KEY} as customer, id % 977 as amount, concat('note ', id % 5003) as note "
            f"from range(0, {rows}, 1, 16)"
        )
        self.house.sql(f"create table totals {KEYS} as {TOTALS}")

    @property
    def orders(self) -> DeltaLog:
        return self.house.catalog.table(RelationName("silt", "main", "orders"))

    def change(self, place: str, turn: int) -> None:
        """Changes one row of each `SHARE` rows."""
        start = self.rows // (turn + 2)
        where = PLACES[place].format(start=start, count=self.rows // SHARE, turn=turn)
        self.house.sql(f"update orders set amount = amount + {turn + 1} where {where}")

    def follow(self) -> None:
        """Replaces the rows of the changed keys.

        Raises:
            RuntimeError: if all rows were replaced.
        """
        self.house.sql(f"insert into totals by name replace {KEYS} {TOTALS}")
        commit = next(iter(self.house.catalog.table(RelationName("silt", "main", "totals")).newest_commits()))
        if "rebuilt" in commit.info.extra:
            raise RuntimeError(f"all rows were replaced: {commit.info.extra['rebuilt']}")

    def compute_again(self) -> None:
        self.house.sql(f"create or replace table rebuilt as {TOTALS}")

    def read_changed_files(self) -> None:
        """Reads all columns of the files that the newest version of the orders added or revised."""
        snapshot = self.orders.snapshot()
        (changes,) = changes_after(self.orders, snapshot.version - 1, snapshot).versions
        paths = [each.path for each in (*changes.inserted, *(each.after for each in changes.revised))]
        files = snapshot.files.filter(pc.is_in(snapshot.files["path"], value_set=pa.array(paths)))
        scan.read(self.spark, self.orders, snapshot, files).write.format("noop").mode("overwrite").save()

    def check(self) -> None:
        """Raises RuntimeError if the totals differ from the rows that were computed again."""
        for one, other in (("totals", "rebuilt"), ("rebuilt", "totals")):
            if self.house.sql(f"select * from {one} except all select * from {other} limit 1").collect():
                raise RuntimeError(f"a row of {one} is missing in {other}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the medians."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.changed_keys", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    given = parser.parse_args(arguments)
    columns = ("changed", "follow", "compute again", "times", "read the changed files", "times")
    table = Table(*columns, title=f"{given.rows:,} rows, median seconds of {REPETITIONS}")
    spark = open_session(SessionSettings(master="local[*]", spark_conf={}))
    with tempfile.TemporaryDirectory() as folder:
        shop = Shop(spark, Path(folder), given.rows)
        for place in PLACES:
            follow, again, read = medians(shop, place)
            ratios = (f"{follow / again:.2f}", f"{follow / read:.2f}")
            table.add_row(place, f"{follow:.2f}", f"{again:.2f}", ratios[0], f"{read:.2f}", ratios[1])
    Console().print(table)
    return 0


def medians(shop: Shop, place: str) -> list[float]:
    """Returns the seconds of following a change, of computing all rows, and of reading the changed files."""
    _, *turns = [measured(shop, place, turn) for turn in range(REPETITIONS + 1)]  # the first warms the session up
    return [statistics.median(each) for each in zip(*turns, strict=True)]


def measured(shop: Shop, place: str, turn: int) -> list[float]:
    """Changes the orders, and returns the seconds as `medians` does."""
    shop.change(place, turn)
    found = [seconds(each) for each in (shop.follow, shop.compute_again, shop.read_changed_files)]
    shop.check()
    return found


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main())
