"""The page of the endpoint states why some of dbt-spark's tests cannot pass."""

from __future__ import annotations

from pathlib import Path

from tests.dbt_spark.reasons import ONLY, REASONS

PAGE = Path(__file__).parents[2] / "docs" / "running" / "endpoint.md"


def test_the_page_of_the_endpoint_states_each_reason() -> None:
    listed = PAGE.read_text(encoding="utf-8").partition("cannot pass:")[2].partition("\n## ")[0]
    stated = {row.split(" | ")[1].removesuffix(" |") for row in listed.splitlines() if row.startswith("| ")}
    reasons = {*REASONS.values(), *(each for door in ONLY.values() for each in door.values())}
    assert stated - {"why", "---"} == reasons
