"""Contestant: the protocol of a way to keep tables."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from pyspark.sql import DataFrame, Row

from benchmarks.data import PLAIN, Each, Layout, Rows


class Need(Enum):
    """What a case asks of a contestant; one that does not offer it is left out of the case."""

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
        """Whether the table exists; it may be of an earlier process, which has settled it."""

    def settle(self, table: str) -> None:
        """Writes what another process has to know of the table, which does not change any more."""

    def for_thread(self) -> Contestant:
        """The same contestant with the same tables, for one thread among several."""

    def create(self, table: str, rows: Rows, layout: Layout = PLAIN) -> None:
        """Makes a table of the rows."""

    def create_in_parts(self, table: str, rows: Rows) -> None:
        """Makes a table of the rows in exactly `rows.parts` files; never timed."""

    def append(self, table: str, rows: Rows) -> None:
        """Adds the rows."""

    def merge(self, table: str, rows: Rows, insert_only: bool = False) -> None:
        """Inserts the rows whose key is new, and updates the others unless `insert_only`."""

    def replace(self, table: str, rows: Rows) -> None:
        """Deletes the rows that have a key of these, and inserts these."""

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
        """Deletes the data files that the table uses no longer, whatever their age."""

    def find(self, table: str, key: int) -> list[Row]:
        """The rows of one key."""

    def totals(self, table: str) -> list[Row]:
        """One row of aggregates over all columns of all rows (`TOTALS`)."""

    def copy(self, table: str, new: str) -> None:
        """Makes a table of the same rows, in the same files, at little cost."""

    def remove(self, table: str) -> None:
        """Removes a table; a missing one is no error."""

    def contents(self, table: str) -> DataFrame:
        """All rows."""

    def num_files(self, table: str) -> int:
        """How many data files are in the table's folder, those that it uses no longer among them."""


TOTALS = (
    "count(*) as row_count, sum(id) as ids, sum(category) as categories, sum(length(customer)) as letters, "
    "min(amount) as least, max(amount) as most, max(at) as latest"
)
"""Aggregates that are the same in whatever order rows are added up, and not to be answered from statistics alone."""
