"""What every contestant can do with its tables."""

from __future__ import annotations

from typing import Protocol

from pyspark.sql import DataFrame, Row

from benchmarks.data import Rows


class Contestant(Protocol):
    """One way to keep tables of the rows that `benchmarks.data` describes. Tables are named by short words."""

    name: str

    def provide(self, rows: Rows) -> None:
        """Gets ready, before the clock starts, what a statement cannot make of `rows` by itself."""

    def has(self, table: str) -> bool:
        """Was the table made?"""

    def create(self, table: str, rows: Rows) -> None:
        """Makes a table of the rows."""

    def append(self, table: str, rows: Rows) -> None:
        """Adds the rows."""

    def merge(self, table: str, rows: Rows, insert_only: bool = False) -> None:
        """Inserts the rows whose key is new, and updates the others unless `insert_only`."""

    def delete(self, table: str, low: int, high: int) -> None:
        """Deletes the rows with `low <= id < high`."""

    def find(self, table: str, key: int) -> list[Row]:
        """The rows of one key."""

    def copy(self, table: str, new: str) -> None:
        """Makes a table of the same rows, in the same files, at next to no cost."""

    def remove(self, table: str) -> None:
        """Forgets a table; one that is not there is fine."""

    def contents(self, table: str) -> DataFrame:
        """All rows."""
