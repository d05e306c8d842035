"""Decides whether a dbt command shows status lines: on a terminal that can draw, if dbt prints lines for people."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, TextIO

from dbt.adapters.silt.dbt_seams.command_state import flags
from dbt.adapters.silt.lazy import lazy_module

if TYPE_CHECKING:
    from dbt.adapters.silt.status_lines import display
else:
    display = lazy_module("dbt.adapters.silt.status_lines.display")

_NOT_DRAWN = ("", "dumb", "unknown")
"""The values of TERM for terminals that cannot move the cursor."""
_OF_SPARKS_OWN = ("spark.log.level", "spark.ui.showConsoleProgress")
"""Settings that make Java write to the terminal at any time."""


def display_of(spark_conf: Mapping[str, object]) -> display.Display | None:
    """Returns the display of a command, or None if it shows no lines.

    Args:
        spark_conf: the profile's `spark_conf`.
    """
    return display_on(sys.stdout, spark_conf) if _is_for_people() else None


def display_on(out: TextIO | None, spark_conf: Mapping[str, object]) -> display.Display | None:
    """Returns a display on a stream, if the stream is a terminal that can draw and Java does not write to it."""
    is_drawn = out is not None and out.isatty() and os.environ.get("TERM", "") not in _NOT_DRAWN
    if out is None or not is_drawn or any(name in spark_conf for name in _OF_SPARKS_OWN):
        return None
    return display.on_terminal(out)


def _is_for_people() -> bool:
    given = flags()
    is_quiet = getattr(given, "QUIET", False) or getattr(given, "LOG_LEVEL", "info") == "none"
    return not is_quiet and getattr(given, "LOG_FORMAT", "default") != "json"
