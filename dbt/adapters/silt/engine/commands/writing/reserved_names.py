"""Rejects columns with names that the engine reserves."""

from __future__ import annotations

from dbt.adapters.silt.engine.kernel.errors import InvalidNameError
from dbt.adapters.silt.engine.kernel.table.schema import StructType

RESERVED_PREFIX = "__silt_"


def check_names(schema: StructType, table: str, what: str = "column") -> None:
    """Checks that no column has a name that the engine reserves.

    Raises:
        InvalidNameError: if a column has such a name.
    """
    for name in schema.names:
        if name.lower().startswith(RESERVED_PREFIX):
            raise InvalidNameError(f"the {what} `{name}` has a name that begins with {RESERVED_PREFIX}", table=table)
