"""Jinja in a profile, rendered as dbt renders it where the value is a text."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import SandboxedEnvironment

_FILTERS = ("as_text", "as_native", "as_bool", "as_number")


def rendered(text: str, functions: Mapping[str, Callable[..., str]]) -> str:
    """The text with what it asks for in it.

    Args:
        functions: what it may call, by name.

    Raises:
        ValueError: it is no template, or asks for something else.
    """
    environment = SandboxedEnvironment(undefined=StrictUndefined)
    environment.filters.update(dict.fromkeys(_FILTERS, str))
    try:
        return environment.from_string(text).render(functions)
    except TemplateError as error:
        raise ValueError(str(error)) from error
