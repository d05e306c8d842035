"""Compares the output on a page with a command's output.

As in doctest, `...` matches anything, and white space may have any width. Varying parts may be written as they were in
one run: the clock before dbt's lines, durations, UUIDs, the present time, the versions of dbt-silt and dbt, and the
lines that tables are drawn with.
"""

from __future__ import annotations

import doctest
import re
from datetime import datetime, timedelta, timezone

_OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_CLOCK = re.compile(r"^\d{2}:\d{2}:\d{2}(?=  )", re.MULTILINE)
_DURATION = re.compile(r"\b\d+\.\d+ ?(?:s\b|seconds\b)")
_LONG_DURATION = re.compile(r"\b\d+ hours \d+ minutes and ")
_UUID = re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b")
_VERSION = re.compile(r"\b(dbt-silt/|dbt=|silt=)[\w.]+")
_RULE = re.compile(r"([-─━=])\1{2,}|(\.)\.{3,}")
_MOMENT = re.compile(r"\b\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}(?:\.\d+)?Z?(?:\+00:00)?")


def matches(shown: str, printed: str) -> bool:
    """Returns whether a command printed the output that the page shows."""
    want, got = _same_every_time(shown), _same_every_time(printed)
    got = _MOMENT.sub(lambda match: "MOMENT" if _is_now(match[0]) else match[0], got)
    # A moment on the page is that of the author's run, unless it is a value of the rows.
    want = _MOMENT.sub(lambda match: match[0] if match[0] in got else "MOMENT", want)
    return doctest.OutputChecker().check_output(want + "\n", got + "\n", _OPTIONS)


def difference(shown: str, printed: str) -> str:
    """Returns the message for an output that does not match."""
    return f"the page shows\n{_indented(shown)}\nand this was printed\n{_indented(printed)}"


def _same_every_time(text: str) -> str:
    text = _VERSION.sub(r"\1VERSION", _CLOCK.sub("CLOCK", _COLOURS.sub("", text)))
    text = _DURATION.sub("DURATION", _LONG_DURATION.sub("", text))
    return _RULE.sub(lambda match: (match[1] or match[2]) * 4, _UUID.sub("UUID", text))


def _is_now(text: str) -> bool:
    """Returns whether a moment, in UTC or in the session's zone, is recent."""
    moment = datetime.fromisoformat(text[:19]).replace(tzinfo=timezone.utc)
    return abs(datetime.now(timezone.utc) - moment) < timedelta(days=2)


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.rstrip().splitlines())
