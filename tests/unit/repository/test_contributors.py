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
ACTIONS = [*WORKFLOWS, *sorted((ROOT / ".github" / "actions").rglob("*.yml"))]
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


def test_the_checks_run_once_in_the_gate_and_not_in_each_shard() -> None:
    steps = [step.get("run", "") for job in jobs("gate.yml").values() for step in job["steps"]]
    assert [step for step in steps if step.startswith("make")] == [
        "make check",
        "make test-all SHARD=${{ matrix.shard }}",
        "make docs",
    ]
    assert re.search(r"^test-all: \$\(if \$\(SHARD\),,check\) ", MAKEFILE, re.M)


def test_each_night_checks_how_many_mutants_the_fast_set_kills() -> None:
    steps = [step.get("run", "") for step in jobs("nightly.yml")["fast-set"]["steps"]]
    assert [step for step in steps if step.startswith("make mutants FAST=yes ")]


def test_each_night_builds_and_runs_the_image() -> None:
    steps = [step.get("run", "") for step in jobs("nightly.yml")["image"]["steps"]]
    assert [step.split()[:2] for step in steps if step] == [["docker", "build"], ["docker", "run"]]


def test_a_release_publishes_only_what_it_has_built_and_tested_and_without_a_password() -> None:
    build, publish = jobs("release.yml")["build"], jobs("release.yml")["publish"]
    assert publish["needs"] == "build" and publish["permissions"] == {"id-token": "write"}
    assert [step["uses"].partition("@")[0] for step in publish["steps"]] == [
        "actions/download-artifact",
        "pypa/gh-action-pypi-publish",
    ]
    assert "secrets." not in (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    tests = [step["run"] for step in build["steps"] if "pytest" in step.get("run", "")]
    paths = [word for line in tests for word in line.split() if word.startswith("tests/")]
    assert paths and all((ROOT / path).is_file() for path in paths)


def test_a_commit_runs_fast_checks_only_and_a_push_all_of_them() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    assert {hook["entry"] for hook in hooks if hook.get("stages") == ["pre-push"]} == {"make check"}
    assert not [hook for hook in hooks if "make" in hook["entry"] and "stages" not in hook]


def test_each_path_with_owners_exists() -> None:
    lines = (ROOT / ".github" / "CODEOWNERS").read_text(encoding="utf-8").splitlines()
    paths = [line.split()[0] for line in lines if line and not line.startswith("#")]
    assert [path for path in paths if path != "*" and not (ROOT / path.lstrip("/")).exists()] == []


@pytest.mark.parametrize("file", ACTIONS, ids=lambda file: file.name)
def test_each_action_of_others_is_pinned_to_a_commit(file: Path) -> None:
    used = re.findall(r"uses: (\S+)", file.read_text(encoding="utf-8"))
    assert [each for each in used if not re.fullmatch(r"\./.*|[\w-]+/[\w-]+@[0-9a-f]{40}", each)] == []


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
