"""Renders the Jinja in a profile, as dbt does for a string."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jinja2 import StrictUndefined
from jinja2.sandbox import SandboxedEnvironment

_FILTERS = ("as_text", "as_native", "as_bool", "as_number")


def rendered(text: str, functions: Mapping[str, Callable[..., str]]) -> str:
    """Renders a string.

    Args:
        functions: the functions that it may call, by name.

    Raises:
        ValueError: if it is not a template, calls another function, or fails.
    """
    environment = SandboxedEnvironment(undefined=StrictUndefined)
    environment.filters.update(dict.fromkeys(_FILTERS, str))
    try:
        return environment.from_string(text).render(functions)
    except Exception as error:  # a template fails as Python does: by a division, a type, a limit
        raise ValueError(str(error)) from error
