"""Turns whatever goes wrong with one table into its problem, so that it does not end what is said of the others."""

from __future__ import annotations

from dbt.adapters.silt.engine.kernel.errors import InternalError, SiltError, TableDamagedError

_TOO_MUCH = (MemoryError, RecursionError)


def problem_of(error: Exception, table: str) -> SiltError:
    """The error as one of the engine's: a table is data that somebody else may have written.

    Args:
        table: its name, for messages.
    """
    if isinstance(error, SiltError):
        return error
    if isinstance(error, _TOO_MUCH):
        return TableDamagedError(f"it takes too much memory to read it ({type(error).__name__})", table=table)
    return InternalError(f"it cannot be read ({error!r:.200})", table=table)
