"""Makes a sentence of what Spark says: without its SQLSTATE, its plan, Java's stack and names of this engine's own.

Spark's error condition, in brackets, stays in front of it: that is the word to look up in Spark's documentation.
"""

from __future__ import annotations

import re
from typing import Final

_END: Final = re.compile(r"\s*SQLSTATE: [0-9A-Z]{5}|;\n|\n== |\n+JVM stacktrace:|\n\tat ")
_LINE: Final = re.compile(r"SQLSTATE: [0-9A-Z]{5} (\(line \d+)")
_SHOWN: Final = re.compile(r"^== SQL \(line \d+, position \d+\) ==\n(.*)\n( *)(\^+)$", re.MULTILINE)
_LONGEST: Final = 80
_OWN: Final = re.compile(r"(?:, )?`?__silt_\w+`?")
_VIEW: Final = re.compile(r"@v\d+/[0-9a-f]+\.\d+")
"""How a session view's name ends: behind the table's own name and version."""


def sentence(text: str) -> str:
    """The message of an exception of Spark's, on one line; with the part of the statement, or the line, at fault.

    Args:
        text: the whole message, as PySpark or Java gives it.
    """
    said = " ".join(_END.split(text.strip(), maxsplit=1)[0].split())
    line = _LINE.search(text)
    if line is not None:
        return f"{without_own_names(said).rstrip('.')} {line[1]})"
    part = _part(text)
    return without_own_names(f"{said.rstrip(' .!')} (in `{part}`)" if part else said)


def without_own_names(text: str) -> str:
    """A text in which tables have their own names, and columns that this engine adds to a plan are not listed."""
    return _VIEW.sub("", _OWN.sub("", text).replace("[, ", "["))


def without_java_stack(text: str) -> str:
    """The message of an error of Spark's, without the lines that say where in Spark it was raised."""
    return text.partition("\nJVM stacktrace:")[0].partition("\n\tat ")[0].strip()


def _part(text: str) -> str:
    """The part of a statement that Spark marks by carets; empty where it marks nothing, or a part of this engine's."""
    shown = _SHOWN.search(text)
    if shown is None:
        return ""
    start = len(shown[2])
    part = shown[1][start : start + len(shown[3])].strip()
    if "__silt_" in part or _VIEW.search(part):
        return ""
    return part if len(part) <= _LONGEST else f"{part[:_LONGEST]}..."
