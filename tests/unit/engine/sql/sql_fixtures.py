"""Fixtures of SQL: titled pairs of an input and its expected result, several to a file.

-- title: what the pair shows
the input, on any number of lines
-- expect:
the expected result, on any number of lines
"""

from __future__ import annotations

import re
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[3] / "fixtures" / "sql"
_PAIR = re.compile(
    r"^-- title: (?P<title>.*)\n(?P<given>(?:.*\n)*?)-- expect:\n(?P<expected>(?:(?!-- title: ).*\n)*)", re.M
)


def pairs(name: str) -> list[Any]:
    """Returns the pairs of a file as parameters (input, expected) of a test, named by their titles."""
    text = (FOLDER / f"{name}.sql").read_text("utf-8")
    found = [
        pytest.param(match["given"].rstrip("\n"), match["expected"].strip("\n"), id=match["title"])
        for match in _PAIR.finditer(text)
    ]
    assert len(found) == text.count("-- title: ") > 0
    return found


def shown(value: Any) -> str:
    """Returns a value as short text: dataclasses without `text` and without default values."""
    if isinstance(value, Enum):
        return value.name
    if is_dataclass(value) and not isinstance(value, type):
        return f"{type(value).__name__}({', '.join(_members(value))})"
    if isinstance(value, tuple):
        return f"({', '.join(shown(each) for each in value)})"
    if isinstance(value, frozenset):
        return f"{{{', '.join(sorted(map(shown, value)))}}}"
    return repr(value)


def _members(value: Any) -> list[str]:
    found = []
    for member in fields(value):
        default = member.default_factory() if member.default_factory is not MISSING else member.default
        given = getattr(value, member.name)
        if member.name != "text" and given != default:
            found.append(f"{member.name}={shown(given)}")
    return found
