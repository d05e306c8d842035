"""Measures the width of text on a terminal, and pads it."""

from __future__ import annotations

import unicodedata


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
