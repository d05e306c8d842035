"""Finds words that the project does not use in docstrings, comments, messages, macros and documents.

It also counts the words that make docstrings and comments hard to read: a room may have fewer of them, never more.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
FORBIDDEN = {
    r"anew": "say: again, rewrite, re-create",
    r"ours": "say: of the warehouse, of this engine",
    r"our tables": "say: tables of the warehouse",
    r"the reference's(?! columns)"
    r"|the reference(?= (?:does|has|gives|takes|writes|reads|knows|refuses|allows|keeps|looks|calls))"
    r"|(?:as|in|of|by|like|from|than) the reference(?=[.,;:)]|$)": "delta-spark is called delta-spark",
    r"(?:be|is|are|was|were|being) had": "say what is done, with a verb",
    r"(?:be|is|are|was|were|being) told|told of": "say: gets, is shown, is named",
    r"stands? in(?! the way| for)": "say: is in",
    r"hangs? on": "say: depends on",
    r"goes with": "say: belongs to, or what happens",
    r"beside": "say: next to, or also",
    r"whose doing": "say who does it",
    r"is none of": "say what it is not",
    r"upkeep": "say: maintenance",
    r"marked rows?|rows? (?:is|are) marked": "say: rows deleted by a deletion vector",
}
"""The forbidden words, each with the words to use instead."""
PATTERNS = {
    words: re.compile(rf"(?<![\w-])(?:{words.replace(' ', chr(92) + 's+')})(?![\w-])", re.I) for words in FORBIDDEN
}
FILES = sorted(
    file
    for pattern in (
        "dbt/**/*.py",
        "macros/**/*.sql",
        "docs/**/*.md",
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "SECURITY.md",
    )
    for file in ROOT.glob(pattern)
)


def texts(file: Path) -> Iterator[tuple[int, str]]:
    """Yields the texts of a file with their first lines: of a Python file, its strings and comments."""
    source = file.read_text(encoding="utf-8")
    if file.suffix != ".py":
        yield 1, source
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
    yield from comments(source)


def comments(source: str) -> Iterator[tuple[int, str]]:
    """Yields the comments of a Python file with their lines."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def found(first_line: int, text: str) -> Iterator[str]:
    """Yields the forbidden words of a text with their lines and the words to use instead."""
    for words, pattern in PATTERNS.items():
        for match in pattern.finditer(text):
            line = first_line + text.count("\n", 0, match.start())
            yield f"line {line}: `{' '.join(match[0].split())}`: {FORBIDDEN[words]}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_a_file_has_no_forbidden_word(file: Path) -> None:
    wrong = [each for line, text in texts(file) for each in found(line, text)]
    assert not wrong, f"{file.relative_to(ROOT)}:\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    "text",
    [
        "the file is written anew",
        "a table of ours",
        "as in the reference.",
        "the reference's writer",
        "How a session is had",
        "what it is told",
        "it hangs on\nthe size",
        "kept beside it",
        "the upkeep of a table",
    ],
)
def test_a_forbidden_word_is_found(text: str) -> None:
    assert list(found(1, text))


@pytest.mark.parametrize("text", ["the reference to a table", "hours", "a bookkeeper", "it stands in the way"])
def test_similar_words_are_allowed(text: str) -> None:
    assert not list(found(1, text))


PACKAGE = ROOT / "dbt" / "adapters" / "silt"


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


HARD: Final = ("where", "what", "one|ones|none|those|others", "whoever|nobody|somebody")
"""The words of each figure, in the order of `Figures`."""
ALLOWED: Final = {
    "cli": Figures(0.2, 0.5, 2.9, 0.0),
    "command_server": Figures(0.0, 0.0, 4.4, 0.0),
    "engine/answers": Figures(2.0, 0.0, 11.8, 0.0),
    "engine/changed_keys": Figures(1.2, 0.0, 7.2, 0.0),
    "engine/arrow": Figures(1.2, 0.0, 3.7, 0.0),
    "engine/catalog": Figures(0.2, 0.2, 3.3, 0.0),
    "engine/commands": Figures(0.2, 0.1, 3.6, 0.0),
    "engine/datasource": Figures(0.0, 0.4, 5.5, 0.0),
    "engine/kernel": Figures(0.4, 0.4, 4.9, 0.0),
    "engine/sql": Figures(1.3, 0.3, 3.7, 0.0),
    "engine/statements": Figures(0.5, 0.1, 3.0, 0.0),
    "kept_spark": Figures(0.0, 0.0, 7.3, 0.0),
    "materializations": Figures(0.3, 0.3, 2.8, 0.0),
    "methods": Figures(0.0, 0.0, 2.5, 0.0),
    "records": Figures(0.0, 0.0, 3.0, 0.0),
    "report": Figures(0.0, 0.0, 2.0, 0.0),
    "runs": Figures(0.0, 0.3, 3.6, 0.0),
    "session": Figures(0.0, 0.3, 3.0, 0.0),
    "status_lines": Figures(0.0, 0.0, 5.4, 0.0),
}
"""The highest allowed figures of each room; they may only be lowered."""


def prose(folder: Path) -> str:
    """Returns the docstrings and comments below a folder."""
    return "\n".join(text for file in sorted(folder.rglob("*.py")) for text in _texts(file.read_text(encoding="utf-8")))


def _texts(source: str) -> list[str]:
    nodes = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Expr))
    strings = [each.value for each in nodes if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return [*strings, *(text for _, text in comments(source))]


def figures(text: str) -> Figures:
    words = len(re.findall(r"[A-Za-z']+", text))
    counts = (len(re.findall(rf"\b(?:{pattern})\b", text, re.I)) for pattern in HARD)
    return Figures(*(round(1000 * count / words, 1) for count in counts))


@pytest.mark.parametrize("room", ALLOWED)
def test_a_room_is_no_harder_to_read_than_before(room: str) -> None:
    found = figures(prose(PACKAGE / room))
    worse = [name for name, now, most in zip(Figures._fields, found, ALLOWED[room], strict=True) if now > most]
    assert not worse, f"{room}: {found}, and {ALLOWED[room]} is allowed"


def test_words_are_counted_in_docstrings_and_comments_only() -> None:
    source = 'def f() -> str:\n    """Whoever asks where."""\n    return "nobody"  # those are\n'
    assert figures("\n".join(_texts(source))) == Figures(200.0, 0.0, 200.0, 200.0)
