"""WriteCounts: the rows, files and attempts of a write, for its outcome, dbt's records and a table's history."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields


@dataclass(frozen=True, kw_only=True)
class WriteCounts:
    """The rows, files and attempts of a write, or of several; None if unknown or meaningless.

    Attributes:
        files_added, files_removed: the numbers of files that the commit added and removed.
        files_skipped: files of the table that the statement did not need to open.
        attempts: commit attempts; 0 if there was nothing to commit.
        statement_attempts: runs of the whole statement.
    """

    rows_inserted: int | None = None
    rows_updated: int | None = None
    rows_deleted: int | None = None
    files_added: int | None = None
    files_removed: int | None = None
    files_skipped: int | None = None
    attempts: int | None = None
    statement_attempts: int | None = None

    @property
    def counts(self) -> WriteCounts:
        """The counts alone, without the fields of a subclass."""
        return WriteCounts(**{each.name: getattr(self, each.name) for each in fields(WriteCounts)})

    @property
    def rows(self) -> tuple[int | None, int | None, int | None]:
        """The rows inserted, updated and deleted."""
        return self.rows_inserted, self.rows_updated, self.rows_deleted

    @property
    def rows_affected(self) -> int | None:
        """The sum of these rows."""
        return _sum(self.rows)

    @classmethod
    def total_rows(cls, parts: Iterable[WriteCounts]) -> WriteCounts:
        """Returns the sums of the rows of several writes; a count that no part has is None."""
        inserted, updated, deleted = map(_sum, zip(*((None,) * 3, *(each.rows for each in parts)), strict=True))
        return cls(rows_inserted=inserted, rows_updated=updated, rows_deleted=deleted)


def _sum(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
