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
    "cli": Figures(13.0, 14.0, 21.6, 0.2),
    "command_server": Figures(0.0, 0.0, 4.4, 0.0),
    "engine/arrow": Figures(8.4, 5.3, 17.7, 1.3),
    "engine/catalog": Figures(4.2, 2.9, 13.2, 1.2),
    "engine/commands": Figures(5.8, 4.9, 16.7, 0.2),
    "engine/datasource": Figures(11.0, 11.7, 25.3, 0.4),
    "engine/kernel": Figures(8.0, 4.6, 21.2, 0.5),
    "engine/sql": Figures(9.7, 8.5, 20.0, 0.3),
    "engine/statements": Figures(7.2, 12.2, 22.1, 0.8),
    "kept_spark": Figures(0.0, 1.8, 7.3, 0.0),
    "materializations": Figures(5.2, 6.8, 19.2, 0.8),
    "methods": Figures(5.0, 9.4, 19.4, 0.0),
    "records": Figures(11.3, 9.9, 26.7, 0.2),
    "registration": Figures(0.0, 0.0, 9.7, 0.0),
    "report": Figures(11.0, 12.6, 26.4, 2.4),
    "runs": Figures(8.8, 13.0, 17.2, 0.2),
    "session": Figures(7.7, 12.2, 17.5, 2.0),
    "status_lines": Figures(0.0, 1.3, 9.4, 0.0),
    "tools": Figures(0.0, 16.7, 0.0, 0.0),
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
