"""Recognises boolean conditions by their SQL."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.commands.writing.rules import is_surely_boolean


@pytest.mark.parametrize(
    "text",
    [
        *("a = 1", "t.a <=> s.a", "(a = 1)", "((a) is null)", "not a", "! a", "true", "a and b", "exists (select 1)"),
        *("a in (1, 2)", "s like 'x%'", "case when a then 1 end = 1", "a between 1 and 2", "(a = 1) or (b)"),
        *("a /* = */ = 1 -- end", "end = 1", "(end = 1)", "coalesce(end, 0) = 1"),
    ],
)
def test_a_comparison_outside_of_brackets_and_cases_is_a_condition(text: str) -> None:
    assert is_surely_boolean(text)


@pytest.mark.parametrize(
    "text",
    [
        *("1", "null", "(null)", "'a = 1'", "a", "`a = 1`", "if(a = 1, 2, 3)", "case when a = 1 then 2 end", "f(a, b)"),
        *("a /* = 1 */", "t.`not`", "s.in", "(a) + (b)", "m['a = 1']", "(select max(a = 1) from t)", "", "()"),
        "end + size(filter(xs, x -> x = 1))",
    ],
)
def test_any_other_text_is_not_recognised_as_a_condition(text: str) -> None:
    assert not is_surely_boolean(text)
