"""Suggests functions for a call of an unknown function: similar names, and Spark's equivalents."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from dbt.adapters.silt.engine.commands.spark import errors
from dbt.adapters.silt.engine.kernel.errors import FunctionNotFoundError
from dbt.adapters.silt.engine.kernel.near_names import near_names
from dbt.adapters.silt.engine.sql.foreign_names import FUNCTIONS
from dbt.adapters.silt.engine.statements.resolve.namespace import Namespace


@contextlib.contextmanager
def mapped(namespace: Namespace) -> Iterator[None]:
    """Turns Spark's failures into errors of this engine like `errors.mapped`, with suggestions for a missing function.

    Args:
        namespace: namespace of the session in which the statement failed.

    Raises:
        FunctionNotFoundError: if a called function is unknown.
        SiltError, PySparkException: if anything else fails.
    """
    try:
        with errors.mapped():
            yield
    except FunctionNotFoundError as error:
        name = error.details.get("function")
        remedy = None if name is None else _remedy(namespace, str(name))
        if remedy is None:
            raise
        raise FunctionNotFoundError(error.problem, remedy=remedy, details=error.details) from error


def _remedy(namespace: Namespace, name: str) -> str | None:
    """Returns the suggestion, if a known name is similar."""
    if name.lower() in FUNCTIONS:
        return f"In Spark, write {FUNCTIONS[name.lower()]}"
    near = near_names(name, namespace.functions())
    return f"Did you mean {' or '.join(f'`{each}`' for each in near)}?" if near else None
