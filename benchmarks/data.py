"""The rows of every case, and the sizes of the cases."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

_EXTRA = ("{id}", "concat('value ', {id})", "({id}) / 7")
"""The values of columns beyond the usual five: integers, strings and fractions in turn."""


@dataclass(frozen=True)
class Rows:
    """One row for each key `low <= id < high`, or for every `step`-th key.

    Attributes:
        parts: the number of files of a table of these rows.
        revision: rows of different revisions have different amounts.
        step: the difference between successive keys.
        extra: the number of columns in addition to the usual five.
    """

    low: int
    high: int
    parts: int = 1
    revision: int = 0
    step: int = 1
    extra: int = 0

    @property
    def sql(self) -> str:
        """Returns a query that returns the rows."""
        return (
            "select id, cast(id % 1000 as int) as category, concat('customer ', id % 100000) as customer, "
            f"((id * 7919 + {self.revision}) % 1000003) / 100 as amount, timestamp_seconds(1700000000 + id) as at"
            f"{self._extra_columns()} from range({self.low}, {self.high}, {self.step}, {self.parts})"
        )

    def _extra_columns(self) -> str:
        return "".join(
            f", {_EXTRA[number % 3].format(id=f'id + {number}')} as c{number}" for number in range(self.extra)
        )

    def frame(self, spark: SparkSession) -> DataFrame:
        """Returns the rows as a DataFrame."""
        return spark.sql(self.sql)


@dataclass(frozen=True)
class Layout:
    """The layout of a table.

    Attributes:
        deletion_vectors: whether rows are deleted by deletion vectors; contestants without them rewrite files.
        partition_by: the column that it is partitioned by.
    """

    deletion_vectors: bool = False
    partition_by: str | None = None


PLAIN = Layout()
VECTORS = Layout(deletion_vectors=True)
PARTITIONED = Layout(partition_by="category")


@dataclass(frozen=True)
class Each:
    """The rows with `id % step = remainder`, which are scattered over all files."""

    step: int
    remainder: int

    @property
    def condition(self) -> str:
        """The condition in SQL."""
        return f"id % {self.step} = {self.remainder}"


HUNDREDTH = Each(100, 7)


@dataclass(frozen=True)
class Scale:
    """The sizes of the cases, in rows.

    Attributes:
        parts: the number of files of the large table.
        partitioned: the rows of the partitioned table, which has a partition for each row, up to 1,000.
        fragments: the number of small files to compact, with `partitioned` rows in total.
        appends: the number of appends of each of several threads.
        extra: the number of columns of the wide table in addition to the usual five.
    """

    large: int
    changed: int
    small: int
    appended: int
    parts: int
    partitioned: int
    fragments: int = 200
    appends: int = 10
    extra: int = 1_000

    @property
    def large_table(self) -> Rows:
        """The initial rows of the large table."""
        return Rows(0, self.large, self.parts)

    @property
    def small_table(self) -> Rows:
        """The initial rows of the small table."""
        return Rows(0, self.small)

    @property
    def wide_table(self) -> Rows:
        """The initial rows of the wide table, which are few."""
        return Rows(0, 100, extra=self.extra)

    @property
    def newest_wide(self) -> Rows:
        """Rows around the wide table's end: half of the keys exist, half are new."""
        return Rows(95, 105, revision=1, extra=self.extra)

    @property
    def partitioned_table(self) -> Rows:
        """The initial rows of the partitioned table, where each of two tasks has rows of every partition."""
        return Rows(0, self.partitioned, 2)

    @property
    def fragmented_table(self) -> Rows:
        """The initial rows of the table of small files."""
        return Rows(0, self.partitioned, self.fragments)

    @property
    def newest(self) -> Rows:
        """Rows around the large table's end: half of the keys exist, half are new."""
        return Rows(self.large - self.changed // 2, self.large + self.changed // 2, revision=1)

    @property
    def scattered(self) -> Rows:
        """Rows for every part of the large table: half of the keys exist, half are new."""
        return Rows(0, 2 * self.large, revision=1, step=2 * self.large // self.changed)

    @property
    def middle(self) -> tuple[int, int]:
        """The first key, and the key after the last, of a range inside one file of the large table."""
        rows_of_a_file = self.large // self.parts
        low = (self.parts // 2) * rows_of_a_file + rows_of_a_file // 4
        return low, low + min(self.changed, rows_of_a_file // 2)


FULL = Scale(large=10_000_000, changed=100_000, small=1_000, appended=100, parts=16, partitioned=2_000_000)
QUICK = Scale(
    large=100_000, changed=2_000, small=100, appended=10, parts=4, partitioned=20_000, fragments=40, extra=100
)


def short(number: int) -> str:
    """Returns a number of rows in short form, such as 10m, 100k or 250."""
    for size, letter in ((1_000_000, "m"), (1_000, "k")):
        if number >= size and number % size == 0:
            return f"{number // size}{letter}"
    return str(number)
