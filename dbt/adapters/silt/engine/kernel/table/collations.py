"""Refuses collations, because they do not compare strings by their bytes.

Source: the metadata of fields that Spark writes, `__COLLATIONS`: a collation for each path of a string in the field.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dbt.adapters.silt.engine.kernel.errors import UnsupportedFeatureError
from dbt.adapters.silt.engine.kernel.table.schema import StructField, StructType, all_fields

COLLATIONS_KEY: Final = "__COLLATIONS"
FEATURE: Final = "collations"

INSTEAD: Final = "Use `string` without a collation, and write `collate` in the queries that compare or sort the column"
"""The remedy for a new column with a collation."""

OF_A_TABLE: Final = "Drop the table, and create it again from its sources with `string` columns without a collation"
"""The remedy for a table that has such a column."""

_BY_BYTES: Final = "UTF8_BINARY"


def collation_of(field: StructField) -> str | None:
    """Returns a collation of the field or of a part of it, or None if all strings in it compare by bytes."""
    given = field.metadata.get(COLLATIONS_KEY)
    names = given.values() if isinstance(given, Mapping) else () if given is None else (given,)
    found = (str(name).rpartition(".")[2] for name in names)
    return next((name for name in found if name.upper() != _BY_BYTES), None)


def has_collation(field: StructField) -> bool:
    """Returns whether the field, or a field inside it, has a collation."""
    return any(collation_of(each) is not None for each in all_fields(StructType((field,))))


def check_collations(schema: StructType, table: str | None, remedy: str = INSTEAD) -> None:
    """Raises an error if a column, or a part of a column, has a collation.

    Raises:
        UnsupportedFeatureError: if a column has a collation.
    """
    for field in all_fields(schema):
        collation = collation_of(field)
        if collation is not None:
            raise refused(f"the column `{field.name}` has the collation {collation}", table, remedy)


def refused(problem: str, table: str | None, remedy: str = INSTEAD) -> UnsupportedFeatureError:
    """Returns the error with the problem and the name of the table feature."""
    return UnsupportedFeatureError(
        f"{problem}: the table feature {FEATURE} is not supported",
        remedy=remedy,
        table=table,
        details={"features": (FEATURE,)},
    )
