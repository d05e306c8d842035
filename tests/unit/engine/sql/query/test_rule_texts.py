"""Texts of rules that would occupy Spark's parser for long are refused before Spark sees them."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.sql.query.rule_texts import problem


@pytest.mark.parametrize(
    "text", ["(" * 1_500 + "a" + ")" * 1_500, " + ".join(["a"] * 3_000), "abs(" * 101 + "a" + ")" * 101]
)
def test_a_rule_of_absurd_depth_or_length_is_refused(text: str) -> None:
    found = problem(text)
    assert found is not None and found.startswith("more than 100 nested parentheses")


@pytest.mark.parametrize("text", ["(" * 50 + "a" + ")" * 50, " + ".join(["a"] * 500), ") a (", "a > 0 and (b < 1)"])
def test_a_rule_of_usual_depth_is_not_refused_for_its_size(text: str) -> None:
    assert not (problem(text) or "").startswith("more than")
