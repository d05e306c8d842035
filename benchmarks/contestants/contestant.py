"""Contestant: the protocol of a way to keep tables."""

from __future__ import annotations

from typing import Protocol

from pyspark.sql import DataFrame, Row

from benchmarks.data import Rows


class Contestant(Protocol):
    """One way to keep tables of the rows of `benchmarks.data`. Tables have short names."""

    name: str

    def provide(self, rows: Rows) -> None:
        """Prepares, before the timing, the input that a statement cannot read from `rows` itself."""

    def has(self, table: str) -> bool:
        """Whether the table exists."""

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
        """Makes a table of the same rows, in the same files, at little cost."""

    def remove(self, table: str) -> None:
        """Removes a table; a missing one is no error."""

    def contents(self, table: str) -> DataFrame:
        """All rows."""
