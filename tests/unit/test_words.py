"""Finds words that the project does not use in docstrings, comments, messages, macros and documents."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

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
"""What is not said, and what to say in its place."""
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
    """What a file says to people, each text with its first line: of Python, its strings and comments."""
    source = file.read_text(encoding="utf-8")
    if file.suffix != ".py":
        yield 1, source
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def found(first_line: int, text: str) -> Iterator[str]:
    """The forbidden words of a text, each with its line and what to say."""
    for words, pattern in PATTERNS.items():
        for match in pattern.finditer(text):
            line = first_line + text.count("\n", 0, match.start())
            yield f"line {line}: `{' '.join(match[0].split())}`: {FORBIDDEN[words]}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_a_file_says_it_in_plain_words(file: Path) -> None:
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
def test_other_words_pass(text: str) -> None:
    assert not list(found(1, text))
