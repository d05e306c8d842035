"""delta-rs, without Spark. Spark makes its input rows as Arrow data before the timing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from pyspark.sql import DataFrame, Row, SparkSession

from benchmarks.data import Rows


class DeltaRs:
    """Tables by path."""

    name = "delta-rs"

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._given: dict[Rows, pa.Table] = {}

    def provide(self, rows: Rows) -> None:
        if rows not in self._given:
            self._given = {rows: rows.frame(self._spark).toArrow()}

    def has(self, table: str) -> bool:
        return (self._folder / table).exists()

    def create(self, table: str, rows: Rows) -> None:
        write_deltalake(self._path(table), self._given[rows])

    def append(self, table: str, rows: Rows) -> None:
        write_deltalake(self._path(table), self._given[rows], mode="append")

    def merge(self, table: str, rows: Rows, insert_only: bool = False) -> None:
        target = DeltaTable(self._path(table))
        merge = target.merge(self._given[rows], "old.id = new.id", source_alias="new", target_alias="old")
        if not insert_only:
            merge = merge.when_matched_update_all()
        merge.when_not_matched_insert_all().execute()

    def delete(self, table: str, low: int, high: int) -> None:
        DeltaTable(self._path(table)).delete(f"id >= {low} and id < {high}")

    def find(self, table: str, key: int) -> list[Row]:
        query = QueryBuilder().register("searched", DeltaTable(self._path(table)))
        found = pa.table(query.execute(f"select * from searched where id = {key}"))
        return [Row(**row) for row in found.to_pylist()]

    def copy(self, table: str, new: str) -> None:
        # Files of a table never change, so the copy may share them.
        shutil.copytree(self._folder / table, self._folder / new, copy_function=os.link)

    def remove(self, table: str) -> None:
        shutil.rmtree(self._folder / table, ignore_errors=True)

    def contents(self, table: str) -> DataFrame:
        return self._spark.read.parquet(*DeltaTable(self._path(table)).file_uris())

    def _path(self, table: str) -> str:
        return str(self._folder / table)
