"""The files for contributors match the project: links, lanes, shards of the gate, and targets of make."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.lanes.lanes import LANES

ROOT = Path(__file__).parents[3]
PAGES = sorted(ROOT.glob("*.md"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted(path for path in (ROOT / ".github").rglob("*.yml") if path not in WORKFLOWS)


def jobs(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text())["jobs"]
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_link_of_a_page_points_to_a_file(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_each_lane_runs_every_night() -> None:
    assert jobs("nightly.yml")["lanes"]["strategy"]["matrix"]["lane"] == [lane.name for lane in LANES]


def test_the_shards_of_the_gate_cover_the_whole_gate() -> None:
    parts = jobs("gate.yml")["test"]["strategy"]["matrix"]["shard"]
    assert parts == [f"{number}/{len(parts)}" for number in range(1, len(parts) + 1)]


def test_each_make_command_in_pages_and_workflows_names_a_target() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (*PAGES, *WORKFLOWS, ROOT / ".pre-commit-config.yaml")]
    called = {target for text in texts for target in re.findall(r"(?:^|`|: )make ([a-z][a-z-]+)", text, re.M)}
    assert {"check", "test", "test-changed", "docs"} <= called
    assert {
        target for target in called if f"\n{target}: " not in MAKEFILE and f"\n{target}:\n" not in MAKEFILE
    } == set()


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_a_form_is_valid_yaml(form: Path) -> None:
    assert yaml.safe_load(form.read_text(encoding="utf-8"))
