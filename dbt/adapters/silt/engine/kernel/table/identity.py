"""Identity columns: numbers that the table assigns to new rows, each only once.

Source: the Delta specification, section "Identity Columns". The last assigned number, the high-water mark, is in the
column's metadata. A commit that assigns numbers therefore changes the metadata: of two commits that began at the same
mark, the second conflicts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from dbt.adapters.silt.engine.kernel.errors import CorruptLogError, UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.table.actions import Metadata
from dbt.adapters.silt.engine.kernel.table.schema import StructField, StructType

START: Final = "delta.identity.start"
STEP: Final = "delta.identity.step"
HIGH_WATER_MARK: Final = "delta.identity.highWaterMark"
ALLOW_EXPLICIT_INSERT: Final = "delta.identity.allowExplicitInsert"
KEYS: Final = (START, STEP, HIGH_WATER_MARK, ALLOW_EXPLICIT_INSERT)

_LEAST, _GREATEST = -(1 << 63), (1 << 63) - 1


@dataclass(frozen=True)
class Identity:
    """The numbering of rows by an identity column.

    Args:
        start: the first number.
        step: the difference of successive numbers; not 0.
        allows_explicit: whether a statement may supply its own values (BY DEFAULT).
        mark: the last assigned number; None before the first.
    """

    start: int = 1
    step: int = 1
    allows_explicit: bool = False
    mark: int | None = None

    @property
    def first(self) -> int:
        """The next number.

        >>> Identity(start=5, step=-2).first, Identity(start=5, step=-2, mark=1).first, Identity(mark=-3).first
        (5, -1, 1)
        """
        if self.mark is None:
            return self.start
        return self.start + max((self.mark - self.start) // self.step + 1, 0) * self.step

    def last(self, count: int) -> int:
        """Returns the number of the last of `count` new rows; `count` is not 0.

        Raises:
            UnsupportedStatementError: if the number does not fit into a BIGINT.
        """
        last = self.first + (count - 1) * self.step
        if not _LEAST <= last <= _GREATEST:
            raise UnsupportedStatementError(
                f"an identity column has no numbers left: after {self.mark} in steps of {self.step}, {count} more do "
                "not fit into a BIGINT",
                remedy="Re-create the table with another start and step",
            )
        return last

    @property
    def metadata(self) -> dict[str, int | bool | None]:
        """The entries of the column's metadata."""
        return {
            START: self.start,
            STEP: self.step,
            ALLOW_EXPLICIT_INSERT: self.allows_explicit,
            HIGH_WATER_MARK: self.mark,
        }

    @property
    def sql(self) -> str:
        """The SQL clause that declares the identity column.

        >>> Identity(10, 2).sql
        'GENERATED ALWAYS AS IDENTITY (START WITH 10 INCREMENT BY 2)'
        """
        kind = "BY DEFAULT" if self.allows_explicit else "ALWAYS"
        return f"GENERATED {kind} AS IDENTITY (START WITH {self.start} INCREMENT BY {self.step})"


def identity_of(column: StructField) -> Identity | None:
    """Returns the column's numbering of rows, or None if it is not an identity column.

    Raises:
        CorruptLogError: if its metadata contradicts the specification.
    """
    entries = column.metadata
    if not any(key in entries for key in KEYS):
        return None
    mark = entries.get(HIGH_WATER_MARK)
    try:
        found = Identity(
            int(entries[START]),
            int(entries[STEP]),
            entries.get(ALLOW_EXPLICIT_INSERT) is True,
            None if mark is None else int(mark),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptLogError(f"the identity column `{column.name}` cannot be read ({error!r})") from error
    if found.step == 0:
        raise CorruptLogError(f"the identity column `{column.name}` has a step of 0")
    return found


def identities(schema: StructType) -> dict[str, Identity]:
    """Returns the identity columns by name; members of structs cannot be identity columns."""
    found = {column.name: identity_of(column) for column in schema}
    return {name: identity for name, identity in found.items() if identity is not None}


def moved(metadata: Metadata, counts: Mapping[str, int]) -> Metadata:
    """Returns the metadata after the given count of numbers was assigned for each identity column.

    Raises:
        UnsupportedStatementError: as in `Identity.last`.
    """
    schema = StructType.from_json(metadata.schema_string)
    for name, count in counts.items():
        column = schema.require(name)
        identity = identity_of(column)
        if identity is not None and count:
            schema = schema.replace(name, column.with_metadata(**{HIGH_WATER_MARK: identity.last(count)}))
    return replace(metadata, schema_string=schema.to_json()) if any(counts.values()) else metadata


def with_farthest_marks(schema: StructType, replaced: StructType) -> StructType:
    """Returns the schema of a version that replaces another, in which each identity column goes on after the numbers
    that either has assigned.
    """
    return StructType(tuple(_with_farthest_mark(column, replaced.field(column.name)) for column in schema))


def _with_farthest_mark(column: StructField, replaced: StructField | None) -> StructField:
    marks = [each.metadata.get(HIGH_WATER_MARK) for each in (column, replaced) if each is not None]
    known = [int(mark) for mark in marks if mark is not None]
    if not known or STEP not in column.metadata:
        return column
    farthest = max(known) if int(column.metadata[STEP]) > 0 else min(known)
    return column.with_metadata(**{HIGH_WATER_MARK: farthest})
