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
    r"marked rows?|rows? (?:is|are) marked": "say: rows deleted by a deletion vector",
    r"(?:logs?|VACUUM|table) no longer ha(?:s|ve)(?! been)": "say what is no longer in it, or what was removed from it",
    r"because of which|of which only": "say what causes it, with a verb",
    r"(?:name|reference|path)s? means?": "say: refers to",
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
        *("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "RELEASE.md", "AGENTS.md"),
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
        relatives: which after a preposition, instead of a sentence of its own.
    """

    where: float
    what: float
    pronouns: float
    people: float
    relatives: float


_PREPOSITIONS: Final = (
    "above|after|at|because of|before|below|between|by|for|from|in|into|of|on|through|to|under|with|within|without"
)
HARD: Final = (
    *("where", "what", r"(?-i:(?!None\b))(?:one|ones|none|those|others)", "whoever|nobody|somebody"),
    rf"(?:{_PREPOSITIONS})\s+which",
)
"""The words of each figure, in the order of `Figures`."""
ALLOWED: Final = {
    ".": Figures(1.5, 0.5, 2.5, 0.5, 2.5),
    "cli": Figures(0.2, 0.5, 2.9, 0.0, 1.5),
    "command_server": Figures(0.0, 0.0, 4.4, 0.0, 2.0),
    "dbt_seams": Figures(0.5, 1.5, 2.0, 0.0, 3.0),
    "engine/answers": Figures(2.0, 0.0, 11.8, 0.0, 1.5),
    "engine/arrow": Figures(1.2, 0.0, 3.7, 0.0, 2.5),
    "engine/builds": Figures(0.0, 3.5, 5.5, 0.0, 2.5),
    "engine/catalog": Figures(0.2, 0.2, 3.3, 0.0, 2.0),
    "engine/changed_keys": Figures(1.2, 0.0, 7.2, 0.0, 3.5),
    "engine/commands": Figures(0.2, 0.1, 3.6, 0.0, 2.0),
    "engine/datasource": Figures(0.0, 0.4, 5.5, 0.0, 2.5),
    "engine/kernel": Figures(0.4, 0.4, 4.9, 0.0, 2.5),
    "engine/sql": Figures(1.3, 0.3, 3.7, 0.0, 2.0),
    "engine/statements": Figures(0.5, 0.1, 3.0, 0.0, 2.5),
    "kept_spark": Figures(0.0, 0.0, 7.3, 0.0, 2.0),
    "materializations": Figures(0.3, 0.3, 2.8, 0.0, 1.5),
    "methods": Figures(0.0, 0.0, 2.5, 0.0, 2.0),
    "records": Figures(0.0, 0.0, 3.0, 0.0, 0.5),
    "report": Figures(0.0, 0.0, 2.0, 0.0, 3.0),
    "runs": Figures(0.0, 0.3, 3.6, 0.0, 2.0),
    "session": Figures(0.0, 0.3, 3.0, 0.0, 3.0),
    "status_lines": Figures(0.0, 0.0, 5.4, 0.0, 3.0),
}
"""The highest allowed figures of each room; they may only be lowered."""


def prose(room: str) -> str:
    """Returns the docstrings and comments of a room; "." is the files of the package's root and of the engine's."""
    files = [*PACKAGE.glob("*.py"), *PACKAGE.glob("engine/*.py")] if room == "." else (PACKAGE / room).rglob("*.py")
    return "\n".join(text for file in sorted(files) for text in _texts(file.read_text(encoding="utf-8")))


def _texts(source: str) -> list[str]:
    return [*(node.value for node in _docstrings(source)), *(text for _, text in comments(source))]  # type: ignore[list-item]


def _docstrings(source: str) -> list[ast.Constant]:
    nodes = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Expr))
    return [node for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def figures(text: str) -> Figures:
    words = len(re.findall(r"[A-Za-z']+", text))
    counts = (len(re.findall(rf"\b(?:{pattern})\b", text, re.I)) for pattern in HARD)
    return Figures(*(round(1000 * count / words, 1) for count in counts))


@pytest.mark.parametrize("room", ALLOWED)
def test_a_room_is_no_harder_to_read_than_before(room: str) -> None:
    found = figures(prose(room))
    worse = [name for name, now, most in zip(Figures._fields, found, ALLOWED[room], strict=True) if now > most]
    assert not worse, f"{room}: {found}, and {ALLOWED[room]} is allowed"


def test_words_are_counted_in_docstrings_and_comments_only() -> None:
    source = 'def f() -> str:\n    """Whoever asks where."""\n    return "nobody"  # those are\n'
    assert figures("\n".join(_texts(source))) == Figures(200.0, 0.0, 200.0, 200.0, 0.0)


SENTENCE: Final = 4
"""A string of at least so many words is a message, not a name or a part of SQL."""
ALLOWED_TEXTS: Final = {
    "messages": Figures(1.0, 1.0, 6.0, 0.0, 1.0),
    "macros": Figures(1.0, 0.0, 9.0, 0.0, 3.0),
    "docs": Figures(1.0, 4.0, 8.0, 0.0, 2.0),
    "docs/models": Figures(1.0, 4.0, 9.0, 0.0, 3.0),
    "docs/running": Figures(1.0, 4.0, 9.0, 0.0, 1.0),
    "docs/engine": Figures(1.0, 2.0, 7.0, 1.0, 2.0),
    "docs/moving": Figures(2.0, 1.0, 10.0, 0.0, 0.0),
    "docs/reference": Figures(1.0, 7.0, 5.0, 0.0, 2.0),
    "docs/decisions": Figures(1.0, 2.0, 8.0, 1.0, 1.0),
    "README.md": Figures(2.0, 3.0, 12.0, 0.0, 0.0),
    "CONTRIBUTING.md": Figures(0.0, 6.0, 7.0, 0.0, 0.0),
    "SECURITY.md": Figures(1.0, 5.0, 2.0, 0.0, 1.0),
    "RELEASE.md": Figures(0.0, 0.0, 0.0, 0.0, 0.0),
    "AGENTS.md": Figures(0.0, 0.0, 5.0, 0.0, 0.0),
}
"""The highest allowed figures of messages, macros and pages; they may only be lowered."""
SQL: Final = re.compile(r"\b(?:select|from|update|delete|insert|where)\s+[\w{(*<]", re.I)


def text(name: str) -> str:
    """Returns the prose of messages, of macros, of the pages of a folder, or of a page."""
    if name == "messages":
        return "\n".join(message for file in sorted(PACKAGE.rglob("*.py")) for message in messages(file))
    if name == "macros":
        sources = (file.read_text(encoding="utf-8") for file in sorted((ROOT / "macros").rglob("*.sql")))
        return "\n".join(comment for source in sources for comment in re.findall(r"(?s)\{#-?(.*?)-?#\}", source))
    files = [ROOT / name] if name.endswith(".md") else sorted((ROOT / name).glob("*.md"))
    return "\n".join(without_code(file.read_text(encoding="utf-8")) for file in files)


def messages(file: Path) -> Iterator[str]:
    """Yields the strings of a file that users may read: sentences, and not docstrings or SQL."""
    source = file.read_text(encoding="utf-8")
    lines = {node.lineno for node in _docstrings(source)}
    for line, found in texts(file):
        if line not in lines and not found.startswith("#") and len(found.split()) >= SENTENCE and not SQL.search(found):
            yield found


def without_code(page: str) -> str:
    """Returns the prose of a page: without blocks and spans of code, and targets of links."""
    prose = re.sub(r"(?s)```.*?```", "", page)
    return re.sub(r"`[^`\n]*`|(?<=\])\([^)]*\)", "", prose)


@pytest.mark.parametrize("name", ALLOWED_TEXTS)
def test_messages_macros_and_pages_are_no_harder_to_read_than_before(name: str) -> None:
    found = figures(text(name))
    worse = [each for each, now, most in zip(Figures._fields, found, ALLOWED_TEXTS[name], strict=True) if now > most]
    assert not worse, f"{name}: {found}, and {ALLOWED_TEXTS[name]} is allowed"


def test_code_is_no_prose_of_a_page() -> None:
    page = "What `what` is\n\n```sql\nselect what\n```\n[where](what.md)"
    assert without_code(page).split() == ["What", "is", "[where]"]


VERB_FIRST: Final = re.compile(
    r"(?:^|[.:;!?]\s+|- )(?:Not )?(?:Supported|Refused|Allowed|Built|Rebuilt|Returned|Recorded|Counted|Read|Written|"
    r"Kept|Listed|Visible|Missing|Tested|Compared|Excluded|Included|Left out)(?: again)? (?:is|are)\b",
    re.M,
)


@pytest.mark.parametrize("file", [file for file in FILES if file.suffix == ".md"], ids=lambda file: file.name)
def test_a_sentence_begins_with_its_subject(file: Path) -> None:
    found = VERB_FIRST.search(file.read_text(encoding="utf-8"))
    assert found is None, f"{file.relative_to(ROOT)}: `{found[0].strip()}`: put the subject first"


def test_a_function_that_may_return_none_does_not_call_it_empty() -> None:
    """An empty value is a string, list or mapping without content."""
    assert [each for file in sorted(PACKAGE.rglob("*.py")) for each in _called_empty(file)] == []


def _called_empty(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and node.returns is not None and "None" in ast.unparse(node.returns):
            said = (ast.get_docstring(node) or "").partition("\n\n")[0]
            if re.search(r"[;,] empty\b", said) and not re.search(r"\bNone\b", said):
                yield f"{file.relative_to(PACKAGE)}:{node.lineno}: {said}"
