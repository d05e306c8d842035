"""Counts the words by which docstrings and comments become hard to read; a room may have fewer of them, never more."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path
from typing import Final, NamedTuple

import pytest

PACKAGE = Path(__file__).parents[2] / "dbt" / "adapters" / "silt"


class Figures(NamedTuple):
    """How often words occur in 1,000 words.

    Attributes:
        where: instead of "if" and "when".
        what: instead of a noun.
        pronouns: one, ones, none, those and others, instead of a noun.
        people: whoever, nobody and somebody, instead of the caller or another writer.
    """

    where: float
    what: float
    pronouns: float
    people: float


PATTERNS: Final = ("where", "what", "one|ones|none|those|others", "whoever|nobody|somebody")
"""In the order of the figures."""
ALLOWED: Final = {
    ".": Figures(8.9, 8.3, 20.5, 0.8),
}
"""The figures of each room when they were last lowered."""


def prose(folder: Path) -> str:
    """The docstrings and comments below a folder."""
    return "\n".join(text for file in sorted(folder.rglob("*.py")) for text in _texts(file.read_text(encoding="utf-8")))


def _texts(source: str) -> list[str]:
    nodes = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Expr))
    strings = [each.value for each in nodes if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return [*strings, *(token.string for token in tokens if token.type == tokenize.COMMENT)]


def figures(text: str) -> Figures:
    words = len(re.findall(r"[A-Za-z']+", text))
    counts = (len(re.findall(rf"\b(?:{pattern})\b", text, re.I)) for pattern in PATTERNS)
    return Figures(*(round(1000 * count / words, 1) for count in counts))


@pytest.mark.parametrize("room", ALLOWED)
def test_a_room_is_no_harder_to_read_than_before(room: str) -> None:
    found = figures(prose(PACKAGE / room))
    worse = [name for name, now, most in zip(Figures._fields, found, ALLOWED[room], strict=True) if now > most]
    assert not worse, f"{room}: {found}, and {ALLOWED[room]} is allowed"


def test_words_are_counted_in_docstrings_and_comments_only() -> None:
    source = 'def f() -> str:\n    """Whoever asks where."""\n    return "nobody"  # those are\n'
    assert figures("\n".join(_texts(source))) == Figures(200.0, 0.0, 200.0, 200.0)
