"""Every page of the documentation is true: its files, commands and programs are run in order."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.documentation.page import Block, Kind, blocks_of
from tests.documentation.runner import run_page

ROOT = Path(__file__).parents[2]
PAGES = [
    page
    for page in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
    if page.parent.name != "decisions" and "```" in page.read_text(encoding="utf-8")
]
IN_THE_GATE = frozenset(
    (
        "README.md",
        "docs/getting-started.md",
        "docs/models/incremental.md",
        "docs/models/table.md",
        "docs/engine/python.md",
    )
)
"""The pages that each run of the tests tries; the long tests try all pages."""


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def marked(page: Path) -> object:
    return pytest.param(page, id=name(page), marks=() if name(page) in IN_THE_GATE else pytest.mark.long)


@pytest.mark.parametrize("page", [marked(page) for page in PAGES])
def test_the_files_commands_and_programs_of_a_page_have_the_stated_results(
    page: Path, page_session: SparkSession, tmp_path: Path
) -> None:
    run_page(page, tmp_path, lambda: page_session)


def test_few_blocks_are_not_run() -> None:
    blocks = [block for page in PAGES for block in blocks_of(page) if block.kind is not Kind.TEXT]
    not_run = [block for block in blocks if block.kind is Kind.NOT_RUN]
    assert len(not_run) <= len(blocks) / 8, "\n".join(map(said, not_run))


def said(block: Block) -> str:
    return f"{name(block.page)}:{block.line}: not run: {block.note}"
