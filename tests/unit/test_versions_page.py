"""The page on versions has the ranges of pyproject.toml and a row for each lane."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.lanes.lanes import LANES, Lane

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "versions.md").read_text(encoding="utf-8")
RANGE = re.compile(r"^\| `([\w-]+)` \| `([^`]+)` \|$", re.MULTILINE)


def dependencies() -> dict[str, Requirement]:
    section = (
        (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition("\ndependencies = [")[2].partition("\n]")[0]
    )
    required = [Requirement(text) for text in re.findall(r'"([^"]+)"', section)]
    return {each.name: each for each in required}


def test_the_ranges_are_those_of_the_dependencies() -> None:
    said = {name: Requirement(name + text).specifier for name, text in RANGE.findall(PAGE)}
    assert {"dbt-core", "dbt-spark", "pyspark", "pyarrow"} <= set(said)
    assert said == {name: each.specifier for name, each in dependencies().items() if name in said}


@pytest.mark.parametrize("lane", [lane for lane in LANES if not lane.may_fail], ids=lambda lane: lane.name)
def test_a_lane_has_its_row(lane: Lane) -> None:
    rows = [line.split(" | ") for line in PAGE.splitlines() if line.startswith(f"| `{lane.name}` |")]
    assert [".".join(row[1].split(".")[:2]) for row in rows] == [lane.python]
    assert [int(row[2].split(".")[0]) >= lane.java for row in rows] == [True]


@pytest.mark.parametrize("lane", [lane for lane in LANES if lane.may_fail], ids=lambda lane: lane.name)
def test_a_lane_of_the_next_versions_is_explained(lane: Lane) -> None:
    _, _, section = PAGE.partition("\n## The next versions\n")
    assert f"`{lane.name}`" in section.partition("\n## ")[0]


def test_the_range_of_python_is_that_of_the_package() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    minors = sorted(map(int, re.findall(r'"Programming Language :: Python :: 3\.(\d+)"', text)))
    assert f'requires-python = ">=3.{minors[0]}"' in text
    assert f"| Python | 3.{minors[0]} to 3.{minors[-1]} |" in PAGE
    assert {lane.python for lane in LANES} == {f"3.{minor}" for minor in minors}
