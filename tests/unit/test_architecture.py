"""docs/ARCHITECTURE.md lists the folders of the code with their docstrings, and its glossary is in order."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "dbt" / "adapters" / "silt"
PAGE = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")


def first_sentence(folder: Path) -> str:
    """Returns the first line of the docstring of a folder's `__init__.py`."""
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8")))
    assert text, f"{folder} needs a docstring: one sentence that says what the folder does"
    return text.splitlines()[0]


def test_every_folder_is_listed_with_the_sentence_of_its_docstring() -> None:
    folders = {file.parent for file in PACKAGE.rglob("__init__.py")} - {PACKAGE}
    sentences = {folder.relative_to(PACKAGE).as_posix(): first_sentence(folder) for folder in folders}
    listed = re.findall(r"^- `([\w/]+)/`: (.+)$", PAGE, re.MULTILINE)
    assert dict(listed) == sentences
    assert len(listed) == len(sentences)


def test_the_glossary_is_alphabetical() -> None:
    words = re.findall(r"^- \*\*(.+)\*\*: ", PAGE.partition("## Glossary")[2], re.MULTILINE)
    assert len(words) > 20
    assert words == sorted(words, key=str.lower)


def test_every_file_that_the_page_names_exists() -> None:
    named = re.findall(r"`([\w/.-]+\.(?:py|sql))`", PAGE)
    assert len(named) > 20
    assert [name for name in named if not ((PACKAGE / name).exists() or (ROOT / name).exists())] == []
