"""The base of the contestants that run SQL statements."""

from __future__ import annotations

import os
import shutil
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Self

from pyspark.sql import DataFrame, Row

from benchmarks.contestants.contestant import TOTALS, Need
from benchmarks.data import PLAIN, Each, Layout, Rows


class BySql(ABC):
    """Tables, each in its own folder, changed by statements."""

    offers = frozenset(Need)

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @abstractmethod
    def execute(self, statement: str) -> None:
        """Runs a statement that changes a table."""

    @abstractmethod
    def query(self, statement: str) -> DataFrame:
        """Returns the rows of a query."""

    @abstractmethod
    def reference(self, table: str) -> str:
        """Returns the table's name in a statement."""

    @abstractmethod
    def for_thread(self) -> Self:
        """Returns the same contestant for one of several threads."""

    def provide(self, *inputs: Rows) -> None:
        return  # A statement generates the rows itself.

    def has(self, table: str) -> bool:
        return (self._folder / table).exists()

    def settle(self, table: str) -> None:
        return  # A table's folder contains all of its state.

    def create(self, table: str, rows: Rows, layout: Layout = PLAIN) -> None:
        vectors = str(layout.deletion_vectors).lower()
        partitioning = f"partitioned by ({layout.partition_by})" if layout.partition_by else ""
        self.execute(
            f"create table {self.reference(table)} using delta {partitioning} "
            f"tblproperties ('delta.enableDeletionVectors' = '{vectors}') as {rows.sql}"
        )

    def create_in_parts(self, table: str, rows: Rows) -> None:
        self.create(table, rows)

    def append(self, table: str, rows: Rows) -> None:
        self.execute(f"insert into {self.reference(table)} {rows.sql}")

    def merge(self, table: str, rows: Rows, insert_only: bool = False) -> None:
        update = "" if insert_only else "when matched then update set *"
        self.execute(
            f"merge into {self.reference(table)} as old using ({rows.sql}) as new on old.id = new.id "
            f"{update} when not matched then insert *"
        )

    def delete(self, table: str, low: int, high: int) -> None:
        self.execute(f"delete from {self.reference(table)} where id >= {low} and id < {high}")

    def delete_each(self, table: str, each: Each) -> None:
        self.execute(f"delete from {self.reference(table)} where {each.condition}")

    def update_each(self, table: str, each: Each) -> None:
        self.execute(f"update {self.reference(table)} set amount = amount + 1 where {each.condition}")

    def delete_partition(self, table: str, category: int) -> None:
        self.execute(f"delete from {self.reference(table)} where category = {category}")

    def optimize(self, table: str) -> None:
        self.execute(f"optimize {self.reference(table)}")

    def vacuum(self, table: str) -> None:
        self.execute(f"vacuum {self.reference(table)} retain 0 hours")

    def find(self, table: str, key: int) -> list[Row]:
        return self.query(f"select * from {self.reference(table)} where id = {key}").collect()

    def totals(self, table: str) -> list[Row]:
        return self.query(f"select {TOTALS} from {self.reference(table)}").collect()

    def copy(self, table: str, new: str) -> None:
        # Files of a table never change, so the copy may share them.
        shutil.copytree(self._folder / table, self._folder / new, copy_function=os.link)

    def remove(self, table: str) -> None:
        shutil.rmtree(self._folder / table, ignore_errors=True)

    def contents(self, table: str) -> DataFrame:
        return self.query(f"select * from {self.reference(table)}")

    def num_files(self, table: str) -> int:
        return sum(1 for _ in (self._folder / table).rglob("part-*.parquet"))
