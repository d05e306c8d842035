"""Refuses columns with names that the engine uses for its own."""

from __future__ import annotations

from dbt.adapters.silt.engine.kernel.errors import InvalidNameError
from dbt.adapters.silt.engine.kernel.table.schema import StructType

RESERVED_PREFIX = "__silt_"


def check_names(schema: StructType, table: str, what: str = "column") -> None:
    """Passes where no column has a name that the engine uses for its own.

    Raises:
        InvalidNameError: one has.
    """
    for name in schema.names:
        if name.lower().startswith(RESERVED_PREFIX):
            raise InvalidNameError(f"the {what} `{name}` has a name that begins with {RESERVED_PREFIX}", table=table)
