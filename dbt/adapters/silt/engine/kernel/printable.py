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
