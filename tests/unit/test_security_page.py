"""SECURITY.md names tests and settings that exist."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from dbt.adapters.silt.credentials import SiltCredentials
from dbt.adapters.silt.engine.commands.maintenance.vacuum import RETENTION_CHECK

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
OPENED = PAGE.partition("## What each setting opens")[2].partition("\n## ")[0]
TESTS = sorted(set(re.findall(r"`(tests/[^`]+)`", PAGE)))
SETTINGS = sorted(name for row in re.findall(r"^\| (`.*?) \|", OPENED, re.M) for name in re.findall(r"`([^`]+)`", row))
OPENS_NOTHING = {
    "database", "schema", "warehouse", "run_id", "isolation_level", "max_commit_attempts", "statement_attempts",
    "target_type", "resume", "publish", "publish_attempts", "held_inputs", "accelerator_required", "audit", "branch",
    "enforced_keys", "upkeep",
}  # fmt: skip
"""Fields of a profile that give no user more access than the profile's user has."""


@pytest.mark.parametrize("path", TESTS)
def test_a_test_that_the_page_names_exists(path: str) -> None:
    assert "def test_" in (ROOT / path).read_text(encoding="utf-8")


def test_each_setting_is_named_or_opens_nothing() -> None:
    known = {each.name for each in fields(SiltCredentials)} - {"_ALIASES"}
    assert set(SETTINGS) | OPENS_NOTHING == known | {RETENTION_CHECK}
    assert not set(SETTINGS) & OPENS_NOTHING


def test_each_test_of_an_attack_is_named() -> None:
    there = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests" / "security").rglob("test_*.py")}
    assert there <= set(TESTS)


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)#]+)\)", PAGE))))
def test_a_linked_page_exists(target: str) -> None:
    assert (ROOT / target).exists()


def test_the_readme_links_to_the_page() -> None:
    assert "[SECURITY.md](SECURITY.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
