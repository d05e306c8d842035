"""The floor: Parquet files and no log. It knows which files hold which keys, and rewrites just those."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.functions import coalesce, col

from benchmarks.data import Rows


@dataclass(frozen=True)
class DataFile:
    """A Parquet file and the keys in it, `low <= id <= high`."""

    path: str
    low: int
    high: int


class BareSpark:
    """Tables as lists of files that only this object knows."""

    name = "bare Spark"

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._schema = Rows(0, 0).frame(spark).schema
        self._files: dict[str, tuple[DataFile, ...]] = {}
        self._new_folders: dict[str, list[Path]] = {}
        self._numbers = itertools.count()

    def provide(self, rows: Rows) -> None:
        return  # Spark makes the rows itself.

    def has(self, table: str) -> bool:
        return table in self._files

    def create(self, table: str, rows: Rows) -> None:
        self._files[table] = ()
        self._write(table, rows.frame(self._spark))

    def append(self, table: str, rows: Rows) -> None:
        self._write(table, rows.frame(self._spark))

    def merge(self, table: str, rows: Rows, insert_only: bool = False) -> None:
        touched, untouched = self._split(table, rows.low, rows.high)
        old = self._read(touched)
        new = rows.frame(self._spark)
        if insert_only:
            self._write(table, new.join(old, "id", "left_anti"))
            return
        # No column is ever null, so a null tells the side that lacks the key.
        both = new.alias("new").join(old.alias("old"), "id", "full_outer")
        values = [coalesce(f"new.{name}", f"old.{name}").alias(name) for name in self._schema.names if name != "id"]
        self._files[table] = untouched
        self._write(table, both.select("id", *values))

    def delete(self, table: str, low: int, high: int) -> None:
        touched, untouched = self._split(table, low, high)
        self._files[table] = untouched
        self._write(table, self._read(touched).where((col("id") < low) | (col("id") >= high)))

    def find(self, table: str, key: int) -> list[Row]:
        touched, _ = self._split(table, key, key + 1)
        return self._read(touched).where(col("id") == key).collect()

    def copy(self, table: str, new: str) -> None:
        self._index(table)
        self._files[new] = self._files[table]

    def remove(self, table: str) -> None:
        self._files.pop(table, None)
        self._new_folders.pop(table, None)
        shutil.rmtree(self._folder / table, ignore_errors=True)

    def contents(self, table: str) -> DataFrame:
        self._index(table)
        return self._read(self._files[table])

    def _split(self, table: str, low: int, high: int) -> tuple[tuple[DataFile, ...], tuple[DataFile, ...]]:
        """The table's files that hold a key of `low <= id < high`, and the others."""
        files = self._files[table]
        touched = tuple(file for file in files if file.low < high and low <= file.high)
        return touched, tuple(file for file in files if file not in touched)

    def _read(self, files: Iterable[DataFile]) -> DataFrame:
        return self._spark.read.schema(self._schema).parquet(*(file.path for file in files))

    def _write(self, table: str, frame: DataFrame) -> None:
        target = self._folder / table / str(next(self._numbers))
        frame.write.parquet(str(target))
        self._new_folders.setdefault(table, []).append(target)

    def _index(self, table: str) -> None:
        """Takes in the files written since, by their footers: the floor knows them, so this is never timed."""
        for folder in self._new_folders.pop(table, []):
            self._files[table] += tuple(_data_file(path) for path in sorted(folder.glob("*.parquet")))


def _data_file(path: Path) -> DataFile:
    footer = pq.read_metadata(path)
    ids = [footer.row_group(group).column(0).statistics for group in range(footer.num_row_groups)]
    return DataFile(str(path), min((each.min for each in ids), default=0), max((each.max for each in ids), default=-1))
