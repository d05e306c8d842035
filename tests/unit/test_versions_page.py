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


@pytest.mark.parametrize("lane", LANES, ids=lambda lane: lane.name)
def test_a_lane_has_its_row(lane: Lane) -> None:
    rows = [line.split(" | ") for line in PAGE.splitlines() if line.startswith(f"| `{lane.name}` |")]
    assert [row[1].rpartition(".")[0] for row in rows] == [lane.python]
    assert [int(row[2].split(".")[0]) >= lane.java for row in rows] == [True]
