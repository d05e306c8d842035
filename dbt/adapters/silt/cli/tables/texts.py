"""Measures texts as part of a line on a terminal, and fills them up."""

from __future__ import annotations

import unicodedata


def width(text: str) -> int:
    """Returns how many columns of a terminal the text takes."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) > 0 for character in text)


def padded(cell: str, wide: int, right: bool) -> str:
    """Returns a text with blanks up to a width."""
    space = " " * (wide - width(cell))
    return space + cell if right else cell + space
