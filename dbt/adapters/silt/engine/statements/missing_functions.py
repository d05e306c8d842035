"""Suggests functions for a call of an unknown function: similar names, and Spark's equivalents."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Final

from dbt.adapters.silt.engine.commands.spark import errors
from dbt.adapters.silt.engine.kernel.errors import FunctionNotFoundError
from dbt.adapters.silt.engine.kernel.near_names import near_names
from dbt.adapters.silt.engine.statements.resolve.namespace import Namespace

_ELSEWHERE: Final[Mapping[str, str]] = {
    "array_construct": "array(...)",
    "charindex": "locate(...)",
    "convert": "cast(x as type)",
    "format_date": "date_format(x, 'yyyy-MM-dd')",
    "generate_series": "sequence(...) or range(...)",
    "iff": "if(...) or case",
    "list_contains": "array_contains(...)",
    "object_construct": "named_struct(...) or map(...)",
    "parse_date": "to_date(x, 'yyyy-MM-dd')",
    "parse_timestamp": "to_timestamp(x, 'yyyy-MM-dd HH:mm:ss')",
    "regexp_matches": "regexp_like(...)",
    "safe_cast": "try_cast(x as type)",
    "safe_divide": "try_divide(...)",
    "strftime": "date_format(x, 'yyyy-MM-dd')",
    "string_split": "split(...)",
    "strpos": "locate(...)",
    "strptime": "to_timestamp(x, 'yyyy-MM-dd HH:mm:ss')",
    "to_json_string": "to_json(...)",
    "try_to_numeric": "try_to_number(x, '999')",
    "unnest": "explode(...)",
}
"""Spark's equivalents of the functions of other platforms."""


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
    if name.lower() in _ELSEWHERE:
        return f"In Spark, write {_ELSEWHERE[name.lower()]}"
    near = near_names(name, namespace.functions())
    return f"Did you mean {' or '.join(f'`{each}`' for each in near)}?" if near else None
