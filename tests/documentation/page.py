"""Reads a page of the documentation as a list of its fenced blocks."""

from __future__ import annotations

import enum
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token


class Kind(enum.Enum):
    """How a block is processed."""

    FILE = "written into the project"
    CONSOLE = "its commands are run and their output is compared"
    PYTHON = "executed"
    DOCTEST = "a doctest"
    SQL = "its statements are run by the warehouse"
    RESULT = "compared with the rows of the last SQL block"
    YAML = "parsed as YAML"
    JSON = "parsed as JSON"
    TEXT = "read by people only"
    NOT_RUN = "not run, for a reason"


_KINDS = {
    "console": Kind.CONSOLE,
    "python": Kind.PYTHON,
    "sql": Kind.SQL,
    "yaml": Kind.YAML,
    "json": Kind.JSON,
    "text": Kind.TEXT,
}
_MARKER = re.compile(r"<!--\s*(not run|fails|result)\b:?\s*(.*?)\s*-->\s*", re.DOTALL)
_FENCE = re.compile(r"\s*(```|~~~)")


class PageError(Exception):
    """A page is wrong: the message starts with the page and the line."""

    def __init__(self, page: Path, line: int, problem: str) -> None:
        super().__init__(f"{page}:{line}: {problem}")


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        page, line: of its first line of text, counted from 1.
        title: the path of the file that it defines, relative to the project.
        note: from its marker: the reason for not running it, or the expected error.
        fails: whether its last command, or the whole block, must fail.
    """

    page: Path
    line: int
    kind: Kind
    text: str
    title: str = ""
    note: str = ""
    fails: bool = False

    def error(self, problem: str, line: int = 0) -> PageError:
        """Returns the error at a line of the block, counted from 0."""
        return PageError(self.page, self.line + line, problem)


@dataclass(frozen=True)
class _Marker:
    """A comment before a block: `not run`, `fails` or `result`, and the text after the colon."""

    word: str = ""
    note: str = ""


def blocks_of(page: Path) -> list[Block]:
    """Reads the blocks of a page.

    Raises:
        PageError: if a block has an unknown language, has neither language nor title, is visible only to the site's
            builder, or if a marker is not followed by a block.
    """
    text = page.read_text(encoding="utf-8")
    tokens = [token for token in MarkdownIt().parse(text) if token.map]
    _check_hidden(page, text, tokens)
    return list(_blocks(page, tokens))


def _blocks(page: Path, tokens: Sequence[Token]) -> Iterator[Block]:
    marker = _Marker()
    for token in tokens:
        if token.type == "fence":
            yield _block(page, token, marker)
            marker = _Marker()
        elif marker.word:
            raise PageError(page, _line(token), f"`{marker.word}` is said of a block, and none follows")
        elif token.type == "html_block" and (match := _MARKER.fullmatch(token.content)):
            marker = _Marker(match[1], " ".join(match[2].split()))
    if marker.word:
        raise PageError(page, _line(tokens[-1]), f"`{marker.word}` is said of a block, and none follows")


def _block(page: Path, token: Token, marker: _Marker) -> Block:
    line = _line(token)
    language, title = _info(page, line, token.info)
    if marker.word == "not run":
        if not marker.note:
            raise PageError(page, line, "say why the block is not run: `<!-- not run: the reason -->`")
        kind = Kind.NOT_RUN
    elif title:
        kind = Kind.FILE
    elif language in _KINDS:
        kind = _KINDS[language]
    else:
        raise PageError(page, line, f"a block of `{language}` is not run: give it a title, or say that it is not run")
    if kind is Kind.PYTHON and token.content.lstrip().startswith(">>> "):
        kind = Kind.DOCTEST
    if marker.word == "result":
        kind = _result(page, line, kind)
    return Block(page, line + 1, kind, token.content, title, marker.note, marker.word == "fails")


def _result(page: Path, line: int, kind: Kind) -> Kind:
    if kind is not Kind.TEXT:
        raise PageError(page, line, "a result is a block of `text`")
    return Kind.RESULT


def _info(page: Path, line: int, info: str) -> tuple[str, str]:
    """Returns the language and the title in a fence's first line."""
    language, *options = shlex.split(info) or [""]
    titles = [each.removeprefix("title=") for each in options if each.startswith("title=")]
    title = titles[0] if titles else ""
    if title and (Path(title).is_absolute() or ".." in Path(title).parts):
        raise PageError(page, line, f"the file {title} would not be in the project")
    return language, title


def _check_hidden(page: Path, text: str, tokens: Sequence[Token]) -> None:
    """Raises PageError if a fence is indented below an admonition or a tab, which only the site's builder reads."""
    inside = {line for token in tokens if token.type == "fence" and token.map for line in range(*token.map)}
    for number, line in enumerate(text.splitlines()):
        if number not in inside and _FENCE.match(line):
            raise PageError(page, number + 1, "this block is not found: take it out of the admonition or the tab")


def _line(token: Token) -> int:
    assert token.map
    return token.map[0] + 1
