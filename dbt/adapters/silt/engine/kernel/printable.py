"""Prepares strings for terminals: escapes control characters, because the strings may come from any user, and pads."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any, Final

_KEPT: Final = "\n\t"
_PLAIN: Final = re.compile(r"[\n\t\x20-\x7e]*")
_NOT_IN_JSON: Final = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
"""Characters that JSON keeps but a terminal may obey, and lone surrogates, which no encoding can write."""
UUID: Final = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""An id that dbt, or a clock of this package, has made."""
SHORT_ID: Final = 8
"""The length of the displayed beginning of an id that dbt has made."""


def is_made_by_dbt(run_id: str) -> bool:
    """Returns whether a run's id is the id of a dbt command, which no person has chosen."""
    return UUID.fullmatch(run_id) is not None


def short_id(run_id: str) -> str:
    """Returns a run's id for messages: the beginning of an id that dbt has made; commands accept it for the id."""
    return run_id[:SHORT_ID] if is_made_by_dbt(run_id) else run_id


def shortened(text: str, longest: int) -> str:
    """Returns a text of at most so many characters, whose end is an ellipsis if it is cut."""
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"


def number_of(number: int, thing: str) -> str:
    """Formats a number of things, such as "1 table" and "2 tables"."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def size_text(number: int) -> str:
    """Formats a number of bytes."""
    amount, unit = float(number), "B"
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if amount < 1000 or unit == "TB":
            break
        amount /= 1000
    return f"{number} B" if unit == "B" else f"{amount:.1f} {unit}"


def line(text: str) -> str:
    """Returns a string as part of a line: characters that would break the line or move the cursor are escaped."""
    return text if text.isprintable() else "".join(map(_printable, text))


def lines(text: str) -> str:
    """Returns a string of several lines: line feeds, tabs and spaces are kept, the rest is escaped as by `line`."""
    if _PLAIN.fullmatch(text):
        return text
    return "".join(each if each in _KEPT or unicodedata.category(each) == "Zs" else _printable(each) for each in text)


def is_visible(name: str) -> bool:
    """Returns whether a name has no invisible characters, which join, separate or reverse other characters."""
    return not any(unicodedata.category(character) == "Cf" for character in name)


def json_text(document: Any) -> str:
    """Returns a value as JSON of several lines, with every invisible character escaped."""
    text = json.dumps(document, ensure_ascii=False, indent=2, default=str)
    return _NOT_IN_JSON.sub(lambda found: json.dumps(found[0])[1:-1], text)


def _printable(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")


def width(text: str) -> int:
    """Returns how many columns of a terminal the text takes."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) > 0 for character in text)


def padded(cell: str, wide: int, right: bool) -> str:
    """Returns the text, padded with blanks to a width."""
    space = " " * (wide - width(cell))
    return space + cell if right else cell + space
