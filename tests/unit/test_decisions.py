"""Decision records have consecutive numbers, the same parts, and paths that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORDS = sorted((ROOT / "docs" / "decisions").glob("*.md"))


def test_records_are_numbered_consecutively() -> None:
    numbers = [int(file.name[:4]) for file in RECORDS]
    assert numbers == list(range(1, len(RECORDS) + 1))


@pytest.mark.parametrize("file", RECORDS, ids=lambda file: file.stem)
def test_a_record_has_its_number_context_decision_and_consequences(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    heading = re.match(r"# (\d{4}): \S", text)
    assert heading is not None and heading[1] == file.name[:4]
    assert not re.search(r"^#", text.partition("\n")[2], re.MULTILINE)
    positions = [text.index(f"**{part}.**") for part in ("Context", "Decision", "Consequences")]
    assert positions == sorted(positions)


@pytest.mark.parametrize("file", RECORDS, ids=lambda file: file.stem)
def test_the_files_that_a_record_names_exist(file: Path) -> None:
    named = re.findall(r"`([\w./-]+/[\w-]+\.(?:py|sql))`", file.read_text(encoding="utf-8"))
    missing = [name for name in named if not ((ROOT / name).exists() or (ROOT / "dbt/adapters/silt" / name).exists())]
    assert not missing
