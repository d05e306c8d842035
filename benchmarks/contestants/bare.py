"""The baseline: Parquet files without a log. It knows each file's keys and rewrites only changed files."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.functions import col, expr, when
from pyspark.sql.types import StructType

from benchmarks.contestants.contestant import TOTALS, Need
from benchmarks.data import PLAIN, Each, Layout, Rows


@dataclass(frozen=True)
class DataFile:
    """A Parquet file and the keys in it, `low <= id <= high`."""

    path: str
    low: int
    high: int


class BareSpark:
    """Tables as lists of files that only this object knows."""

    name = "bare Spark"
    offers = frozenset((Need.ROWS, Need.DELETION_VECTORS, Need.PARTITIONED_WRITE))

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._schemas: dict[str, StructType] = {}
        self._files: dict[str, tuple[DataFile, ...]] = {}
        self._new_folders: dict[str, list[Path]] = {}
        self._partitioned: dict[str, Path] = {}
        self._numbers = itertools.count()

    def provide(self, *inputs: Rows) -> None:
        return  # Spark generates the rows itself.

    def has(self, table: str) -> bool:
        if table not in self._files and self._settled(table).exists():
            found = json.loads(self._settled(table).read_text(encoding="utf-8"))
            self._files[table] = tuple(DataFile(**each) for each in found["files"])
            self._schemas[table] = StructType.fromJson(found["schema"])
        return table in self._files

    def settle(self, table: str) -> None:
        self._index(table)
        kept = {"files": [asdict(file) for file in self._files[table]], "schema": self._schemas[table].jsonValue()}
        self._settled(table).write_text(json.dumps(kept), encoding="utf-8")

    def for_thread(self) -> BareSpark:
        return self

    def create(self, table: str, rows: Rows, layout: Layout = PLAIN) -> None:
        frame = rows.frame(self._spark)
        self._files[table] = ()
        self._schemas[table] = frame.schema
        if layout.partition_by is None:
            self._write(table, frame)
        else:
            self._partitioned[table] = self._folder / table / str(next(self._numbers))
            arranged = self._arranged(frame, layout.partition_by)
            arranged.write.partitionBy(layout.partition_by).parquet(str(self._partitioned[table]))

    def create_in_parts(self, table: str, rows: Rows) -> None:
        self.create(table, rows)

    def append(self, table: str, rows: Rows) -> None:
        self._write(table, rows.frame(self._spark))

    def merge(self, table: str, rows: Rows, insert_only: bool = False) -> None:
        if not insert_only:
            self.replace(table, rows)  # The keys are unique, so that no row of the source need meet a row of the table.
            return
        touched, _ = self._split(table, rows.low, rows.high)
        self._write(table, rows.frame(self._spark).join(self._read(table, touched), "id", "left_anti"))

    def replace(self, table: str, rows: Rows) -> None:
        touched, untouched = self._split(table, rows.low, rows.high)
        new = rows.frame(self._spark)
        kept = self._read(table, touched).join(new.select("id"), "id", "left_anti")
        self._files[table] = untouched
        self._write(table, kept.unionByName(new))

    def delete(self, table: str, low: int, high: int) -> None:
        touched, untouched = self._split(table, low, high)
        self._files[table] = untouched
        self._write(table, self._read(table, touched).where((col("id") < low) | (col("id") >= high)))

    def delete_each(self, table: str, each: Each) -> None:
        old = self._read(table, self._files[table])
        self._files[table] = ()
        self._write(table, old.where(f"not ({each.condition})"))

    def update_each(self, table: str, each: Each) -> None:
        old = self._read(table, self._files[table])
        self._files[table] = ()
        raised = when(expr(each.condition), col("amount") + 1).otherwise(col("amount"))
        self._write(table, old.withColumn("amount", raised))

    def delete_partition(self, table: str, category: int) -> None:
        raise NotImplementedError(Need.PARTITION_DELETE)

    def optimize(self, table: str) -> None:
        raise NotImplementedError(Need.MAINTENANCE)

    def vacuum(self, table: str) -> None:
        raise NotImplementedError(Need.MAINTENANCE)

    def find(self, table: str, key: int) -> list[Row]:
        touched, _ = self._split(table, key, key + 1)
        return self._read(table, touched).where(col("id") == key).collect()

    def totals(self, table: str) -> list[Row]:
        return self._read(table, self._files[table]).selectExpr(*TOTALS.split(", ")).collect()

    def copy(self, table: str, new: str) -> None:
        self._index(table)
        self._files[new] = self._files[table]
        self._schemas[new] = self._schemas[table]

    def remove(self, table: str) -> None:
        self._files.pop(table, None)
        self._schemas.pop(table, None)
        self._new_folders.pop(table, None)
        self._partitioned.pop(table, None)
        self._settled(table).unlink(missing_ok=True)
        shutil.rmtree(self._folder / table, ignore_errors=True)

    def contents(self, table: str) -> DataFrame:
        if table in self._partitioned:
            return self._spark.read.schema(self._schemas[table]).parquet(str(self._partitioned[table]))
        self._index(table)
        return self._read(table, self._files[table])

    def num_files(self, table: str) -> int:
        return sum(1 for _ in (self._folder / table).rglob("*.parquet"))

    def _arranged(self, frame: DataFrame, partition_by: str) -> DataFrame:
        """Returns the rows to write to a partitioned table: each task writes a file to each of its partitions."""
        return frame

    def _settled(self, table: str) -> Path:
        return self._folder / f"{table}.json"

    def _split(self, table: str, low: int, high: int) -> tuple[tuple[DataFile, ...], tuple[DataFile, ...]]:
        """Returns the table's files with a key of `low <= id < high`, and its other files."""
        files = self._files[table]
        touched = tuple(file for file in files if file.low < high and low <= file.high)
        return touched, tuple(file for file in files if file not in touched)

    def _read(self, table: str, files: Iterable[DataFile]) -> DataFrame:
        return self._spark.read.schema(self._schemas[table]).parquet(*(file.path for file in files))

    def _write(self, table: str, frame: DataFrame) -> None:
        target = self._folder / table / str(next(self._numbers))
        frame.write.parquet(str(target))
        self._new_folders.setdefault(table, []).append(target)

    def _index(self, table: str) -> None:
        """Records new files by their footers; not timed, because the baseline needs no log."""
        for folder in self._new_folders.pop(table, []):
            self._files[table] += tuple(_data_file(path) for path in sorted(folder.glob("*.parquet")))


class BareSparkRepartitioned(BareSpark):
    """The same, but the rows of each partition are shuffled to one task first, so that it gets one file."""

    name = "bare Spark, repartitioned"
    offers = frozenset((Need.PARTITIONED_WRITE,))

    def _arranged(self, frame: DataFrame, partition_by: str) -> DataFrame:
        return frame.repartition(col(partition_by))


def _data_file(path: Path) -> DataFile:
    footer = pq.read_metadata(path)
    ids = [footer.row_group(group).column(0).statistics for group in range(footer.num_row_groups)]
    return DataFile(str(path), min((each.min for each in ids), default=0), max((each.max for each in ids), default=-1))
