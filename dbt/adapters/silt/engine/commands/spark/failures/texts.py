"""Turns messages of Spark into sentences without SQLSTATE, plan, Java's stack and internal names of this engine.

A sentence begins with Spark's error condition in brackets, which users can look up in Spark's documentation.
"""

from __future__ import annotations

import re
from typing import Final

_END: Final = re.compile(
    r"\s*SQLSTATE: [0-9A-Z]{5}|;\n|\n== |\n+JVM stacktrace:|\n\tat |\s+Verify the spelling and correctness"
)
_LINE: Final = re.compile(r"SQLSTATE: [0-9A-Z]{5} (\(line \d+)")
_SHOWN: Final = re.compile(r"^== SQL \(line \d+, position \d+\) ==\n(.*)\n( *)(\^+)$", re.MULTILINE)
_QUOTED: Final = re.compile(r"^== SQL(?: \(line \d+, position \d+\))? ==\n(?P<sql>.*)", re.MULTILINE | re.DOTALL)
_ARROW: Final = re.compile(r"^-*\^+$\n?", re.MULTILINE)
_LONGEST: Final = 80
_OWN: Final = re.compile(r"(?:, )?`?__silt_\w+`?")
_VIEW: Final = re.compile(r"@v\d+/[0-9a-f]+\.\d+")
"""The end of a session view's name, after the table's name."""


def sentence(text: str) -> str:
    """Returns a message of Spark on a single line, with the part of the statement or the line at fault.

    Args:
        text: the whole message of PySpark or Java.
    """
    said = " ".join(_END.split(text.strip(), maxsplit=1)[0].split())
    line = _LINE.search(text)
    if line is not None:
        return f"{without_own_names(said).rstrip('.')} {line[1]})"
    part = _part(text)
    return without_own_names(f"{said.rstrip(' .!')} (in `{part}`)" if part else said)


def quoted_sql(text: str) -> str:
    """Returns the SQL that a message of Spark's parser quotes, without the line that marks a position; may be empty.

    Args:
        text: the whole message of PySpark or Java.
    """
    found = _QUOTED.search(without_java_stack(text))
    return "" if found is None else _ARROW.sub("", found["sql"])


def without_own_names(text: str) -> str:
    """Returns the text with the tables' own names, and without the columns that this engine adds to a plan."""
    return _VIEW.sub("", _OWN.sub("", text).replace("[, ", "["))


def without_java_stack(text: str) -> str:
    """Returns a message of Spark without the lines of its stack trace."""
    return text.partition("\nJVM stacktrace:")[0].partition("\n\tat ")[0].strip()


def located(message: str, part: str) -> str:
    """Returns a message of Spark with the part of the statement at fault, unless the message quotes it already.

    Args:
        message: the message as `sentence` returns it.
        part: the part of the SQL that Spark names; empty if unknown. The message omits the position, because names of
            tables in Spark's SQL are replaced.
    """
    shown = _shown(part)
    if not shown or _compared(shown.removesuffix("...")) in _compared(message):
        return message
    return f"{message.rstrip(' .!')} (in `{shown}`)"


def _part(text: str) -> str:
    """Returns the part of a statement that Spark marks with carets; empty without a mark, or for internal parts."""
    shown = _SHOWN.search(text)
    if shown is None:
        return ""
    start = len(shown[2])
    return _shown(shown[1][start : start + len(shown[3])])


def _shown(part: str) -> str:
    """Returns a part of a statement on a single line and cut to its beginning; empty for an internal part."""
    if "__silt_" in part:
        return ""
    line = " ".join(_VIEW.sub("", part).split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."


def _compared(text: str) -> str:
    return text.lower().replace("`", "").replace('"', "")
