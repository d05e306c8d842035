"""Says whether a dbt command shows status lines: on a terminal that can draw, where dbt prints lines for people."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, TextIO

from dbt.flags import get_flags

from dbt.adapters.silt.lazy import lazy_module

if TYPE_CHECKING:
    from dbt.adapters.silt.status_lines import display
else:
    display = lazy_module("dbt.adapters.silt.status_lines.display")

_NOT_DRAWN = ("", "dumb", "unknown")
"""The values of TERM of terminals that cannot move the cursor."""
_OF_SPARKS_OWN = ("spark.log.level", "spark.ui.showConsoleProgress")
"""Settings by which Java writes to the terminal itself, at any time."""


def display_of(spark_conf: Mapping[str, object]) -> display.Display | None:
    """The display of the command that begins; None where nothing is shown.

    Args:
        spark_conf: of the profile.
    """
    return display_on(sys.stdout, spark_conf) if _is_for_people() else None


def display_on(out: TextIO | None, spark_conf: Mapping[str, object]) -> display.Display | None:
    """A display on a stream; None where that is no terminal that can draw, or Java writes to it too."""
    is_drawn = out is not None and out.isatty() and os.environ.get("TERM", "") not in _NOT_DRAWN
    if out is None or not is_drawn or any(name in spark_conf for name in _OF_SPARKS_OWN):
        return None
    return display.on_terminal(out)


def _is_for_people() -> bool:
    flags = get_flags()  # type: ignore[no-untyped-call]
    is_quiet = getattr(flags, "QUIET", False) or getattr(flags, "LOG_LEVEL", "info") == "none"
    return not is_quiet and getattr(flags, "LOG_FORMAT", "default") != "json"
