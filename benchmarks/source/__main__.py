"""Reads and writes one table by `format("silt")` and by `Warehouse`, in turn, and prints rows per second.

python -m benchmarks.source --rows 4000000 --repeats 3
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.silt import engine as silt

ROWS = "select id, id % 1000 as kind, id / 7 as x, concat('label ', id % 5000) as label, timestamp_seconds(id) as at"


class Measured:
    """One table, read and written in two ways."""

    def __init__(self, spark: SparkSession, folder: Path, rows: int) -> None:
        self.spark, self.folder, self.count = spark, str(folder), rows
        self.house = silt.Warehouse(spark, self.folder)
        silt.DataSource.register(spark)
        self.rows = spark.sql(f"{ROWS} from range(0, {rows}, 1, 4)")
        self.house.write(self.rows, "main.t")

    def by_source(self) -> DataFrame:
        return self.spark.read.format("silt").option("warehouse", self.folder).load("main.t")

    def write_by_source(self) -> None:
        writer = self.rows.write.format("silt").mode("overwrite")
        writer.option("warehouse", self.folder).save("main.written")

    def write_by_house(self) -> None:
        self.house.write(self.rows, "main.written", mode="overwrite")

    def ways(self) -> dict[str, dict[str, Callable[[], object]]]:
        """Returns the measured operations of both ways."""
        return {
            "read all columns": {
                "silt": lambda: consumed(self.by_source()),
                "Warehouse": lambda: consumed(self.house.table("main.t")),
            },
            "read one column": {
                "silt": lambda: consumed(self.by_source().select("x")),
                "Warehouse": lambda: consumed(self.house.table("main.t").select("x")),
            },
            "write": {"silt": self.write_by_source, "Warehouse": self.write_by_house},
        }


def consumed(rows: DataFrame) -> None:
    rows.write.format("noop").mode("overwrite").save()


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="", help="what to measure: that whose name begins so")
    given = parser.parse_args()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder:
        measured = Measured(spark, Path(folder), given.rows)
        chosen = {what: ways for what, ways in measured.ways().items() if what.startswith(given.only)}
        for what, ways in chosen.items():
            times: dict[str, list[float]] = {name: [] for name in ways}
            for _ in range(given.repeats):
                for name, work in ways.items():
                    times[name].append(seconds(work))
            shown = (f"{name} {given.rows / statistics.median(each):,.0f} rows/s" for name, each in times.items())
            print(f"{what}: {', '.join(shown)}", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
