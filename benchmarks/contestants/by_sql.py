"""The base of the contestants that run SQL statements."""

from __future__ import annotations

import os
import shutil
from abc import ABC, abstractmethod
from pathlib import Path

from pyspark.sql import DataFrame, Row

from benchmarks.data import Rows


class BySql(ABC):
    """Tables in one folder each, changed by statements."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @abstractmethod
    def execute(self, statement: str) -> None:
        """Runs a statement that changes a table."""

    @abstractmethod
    def query(self, statement: str) -> DataFrame:
        """The rows of a query."""

    @abstractmethod
    def reference(self, table: str) -> str:
        """The table's name in a statement."""

    def provide(self, rows: Rows) -> None:
        return  # A statement makes the rows itself.

    def has(self, table: str) -> bool:
        return (self._folder / table).exists()

    def create(self, table: str, rows: Rows) -> None:
        self.execute(f"create table {self.reference(table)} as {rows.sql}")

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

    def find(self, table: str, key: int) -> list[Row]:
        return self.query(f"select * from {self.reference(table)} where id = {key}").collect()

    def copy(self, table: str, new: str) -> None:
        # Files of a table never change, so the copy may share them.
        shutil.copytree(self._folder / table, self._folder / new, copy_function=os.link)

    def remove(self, table: str) -> None:
        shutil.rmtree(self._folder / table, ignore_errors=True)

    def contents(self, table: str) -> DataFrame:
        return self.query(f"select * from {self.reference(table)}")
