"""Contestant: the protocol of a way to keep tables."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from pyspark.sql import DataFrame, Row

from benchmarks.data import PLAIN, Each, Layout, Rows


class Need(Enum):
    """A capability that a case needs; contestants without it do not take part in the case."""

    ROWS = "reads and changes the rows of a table"
    DELETION_VECTORS = "changes rows of a table that asks for deletion vectors"
    PARTITIONED_WRITE = "writes a partitioned table"
    PARTITION_DELETE = "deletes a partition as a change of a table that readers see at once"
    MAINTENANCE = "compacts a table and deletes the files that it uses no longer"


class Contestant(Protocol):
    """One way to keep tables of the rows of `benchmarks.data`. Tables have short names."""

    name: str
    offers: frozenset[Need]

    def provide(self, *inputs: Rows) -> None:
        """Prepares, before the timing, the inputs that a statement cannot read from `rows` itself."""

    def has(self, table: str) -> bool:
        """Returns whether the table exists; an earlier process may have created and settled it."""

    def settle(self, table: str) -> None:
        """Writes the state of the table, which no longer changes, for another process."""

    def for_thread(self) -> Contestant:
        """Returns the same contestant with the same tables, for one of several threads."""

    def create(self, table: str, rows: Rows, layout: Layout = PLAIN) -> None:
        """Creates a table of the rows."""

    def create_in_parts(self, table: str, rows: Rows) -> None:
        """Creates a table of the rows in exactly `rows.parts` files; not timed."""

    def append(self, table: str, rows: Rows) -> None:
        """Adds the rows."""

    def merge(self, table: str, rows: Rows, insert_only: bool = False) -> None:
        """Inserts the rows whose key is new, and updates the other rows unless `insert_only`."""

    def replace(self, table: str, rows: Rows) -> None:
        """Deletes the rows with a key of the given rows, and inserts the given rows."""

    def delete(self, table: str, low: int, high: int) -> None:
        """Deletes the rows with `low <= id < high`."""

    def delete_each(self, table: str, each: Each) -> None:
        """Deletes scattered rows."""

    def update_each(self, table: str, each: Each) -> None:
        """Adds 1 to the amounts of scattered rows."""

    def delete_partition(self, table: str, category: int) -> None:
        """Deletes the rows of one partition of a table that is partitioned by `category`."""

    def optimize(self, table: str) -> None:
        """Rewrites small files as few large ones."""

    def vacuum(self, table: str) -> None:
        """Deletes the data files that the table no longer uses, of any age."""

    def find(self, table: str, key: int) -> list[Row]:
        """Returns the rows of one key."""

    def totals(self, table: str) -> list[Row]:
        """Returns one row of aggregates over all columns of all rows (`TOTALS`)."""

    def copy(self, table: str, new: str) -> None:
        """Creates a table of the same rows, in the same files, at little cost."""

    def remove(self, table: str) -> None:
        """Removes a table if it exists."""

    def contents(self, table: str) -> DataFrame:
        """Returns all rows."""

    def num_files(self, table: str) -> int:
        """Returns the number of data files in the table's folder, including unused files."""


TOTALS = (
    "count(*) as row_count, sum(id) as ids, sum(category) as categories, sum(length(customer)) as letters, "
    "min(amount) as least, max(amount) as most, max(at) as latest"
)
"""Aggregates that do not depend on the order of rows, and that statistics alone cannot answer."""
