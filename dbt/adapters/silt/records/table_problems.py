"""Converts any failure with a table to the table's problem, so that other tables are still reported."""

from __future__ import annotations

from dbt.adapters.silt.engine.kernel.errors import InternalError, SiltError, TableDamagedError

_TOO_MUCH = (MemoryError, RecursionError)


def problem_of(error: Exception, table: str) -> SiltError:
    """Returns the error as an error of the engine: another program may have written the table.

    Args:
        table: the table's name, for messages.
    """
    if isinstance(error, SiltError):
        return error
    if isinstance(error, _TOO_MUCH):
        return TableDamagedError(f"it takes too much memory to read it ({type(error).__name__})", table=table)
    return InternalError(f"it cannot be read ({error!r:.200})", table=table)
