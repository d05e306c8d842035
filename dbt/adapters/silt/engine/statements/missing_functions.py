"""Names the functions that a call of an unknown one may mean: those of nearly that name, and what Spark has instead."""

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
"""What Spark writes for the functions of other platforms, for whoever comes from there."""


@contextlib.contextmanager
def mapped(namespace: Namespace) -> Iterator[None]:
    """Turns Spark's failures into errors of this engine, as `errors.mapped` does; a missing function gets near names.

    Args:
        namespace: of the session that the failure is of.

    Raises:
        FunctionNotFoundError: a function that is called is unknown.
        SiltError, PySparkException: any other failure.
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
    """The way out; None if nothing is known that is like the name."""
    if name.lower() in _ELSEWHERE:
        return f"In Spark, write {_ELSEWHERE[name.lower()]}"
    near = near_names(name, namespace.functions())
    return f"Did you mean {' or '.join(f'`{each}`' for each in near)}?" if near else None
