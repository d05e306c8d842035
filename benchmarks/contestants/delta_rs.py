"""delta-rs, without Spark. Spark generates its input rows as Arrow data before the timing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from pyspark.sql import DataFrame, Row, SparkSession

from benchmarks.contestants.contestant import TOTALS, Need
from benchmarks.data import PLAIN, Each, Layout, Rows


class DeltaRs:
    """Tables by path. It reads deletion vectors and does not write them."""

    name = "delta-rs"
    offers = frozenset(Need) - {Need.DELETION_VECTORS}

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._given: dict[Rows, pa.Table] = {}

    def provide(self, *inputs: Rows) -> None:
        if set(inputs) != set(self._given):
            self._given = {rows: rows.frame(self._spark).toArrow() for rows in inputs}

    def has(self, table: str) -> bool:
        return (self._folder / table).exists()

    def settle(self, table: str) -> None:
        return  # A table's folder contains all of its state.

    def for_thread(self) -> DeltaRs:
        return self

    def create(self, table: str, rows: Rows, layout: Layout = PLAIN) -> None:
        write_deltalake(self._path(table), self._given[rows], partition_by=layout.partition_by)

    def create_in_parts(self, table: str, rows: Rows) -> None:
        given, size = self._given[rows], -(-(rows.high - rows.low) // rows.parts)
        for start in range(0, given.num_rows, size):
            write_deltalake(self._path(table), given.slice(start, size), mode="append")

    def append(self, table: str, rows: Rows) -> None:
        write_deltalake(self._path(table), self._given[rows], mode="append")

    def merge(self, table: str, rows: Rows, insert_only: bool = False) -> None:
        target = DeltaTable(self._path(table))
        merge = target.merge(self._given[rows], "old.id = new.id", source_alias="new", target_alias="old")
        if not insert_only:
            merge = merge.when_matched_update_all()
        merge.when_not_matched_insert_all().execute()

    def replace(self, table: str, rows: Rows) -> None:
        self.delete(table, rows.low, rows.high)
        self.append(table, rows)

    def delete(self, table: str, low: int, high: int) -> None:
        DeltaTable(self._path(table)).delete(f"id >= {low} and id < {high}")

    def delete_each(self, table: str, each: Each) -> None:
        DeltaTable(self._path(table)).delete(each.condition)

    def update_each(self, table: str, each: Each) -> None:
        DeltaTable(self._path(table)).update({"amount": "amount + 1"}, predicate=each.condition)

    def delete_partition(self, table: str, category: int) -> None:
        DeltaTable(self._path(table)).delete(f"category = {category}")

    def optimize(self, table: str) -> None:
        DeltaTable(self._path(table)).optimize.compact()

    def vacuum(self, table: str) -> None:
        DeltaTable(self._path(table)).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)

    def find(self, table: str, key: int) -> list[Row]:
        return self._query(f"select * from searched where id = {key}", table)

    def totals(self, table: str) -> list[Row]:
        return self._query(f"select {TOTALS} from searched", table)

    def copy(self, table: str, new: str) -> None:
        # Files of a table never change, so the copy may share them.
        shutil.copytree(self._folder / table, self._folder / new, copy_function=os.link)

    def remove(self, table: str) -> None:
        shutil.rmtree(self._folder / table, ignore_errors=True)

    def contents(self, table: str) -> DataFrame:
        reader = self._spark.read.option("basePath", self._path(table))
        return reader.parquet(*DeltaTable(self._path(table)).file_uris())

    def num_files(self, table: str) -> int:
        return sum(1 for _ in (self._folder / table).rglob("part-*.parquet"))

    def _query(self, query: str, table: str) -> list[Row]:
        builder = QueryBuilder().register("searched", DeltaTable(self._path(table)))
        return [Row(**row) for row in pa.table(builder.execute(query)).to_pylist()]

    def _path(self, table: str) -> str:
        return str(self._folder / table)
