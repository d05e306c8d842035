"""The functions that a text calls, their positions, and the text after they are replaced."""

from __future__ import annotations

import pytest
from hypothesis import given

from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.sql.query.references import function_calls, rewrite, scanned
from dbt.adapters.silt.engine.sql.tokens import Kind, tokenize
from tests.unit.engine.sql.sql_fixtures import pairs
from tests.unit.engine.sql.sql_soup import soups


def marked(sql: str) -> str:
    """Returns the text with each called function's name in angle brackets."""
    calls = function_calls(sql)
    text = rewrite(scanned(sql), {}, functions={call: f"<{'.'.join(call.parts)}>" for call in calls})
    return text.replace("`<", "<").replace(">`", ">")


@pytest.mark.parametrize(("sql", "expected"), pairs("calls"))
def test_calls_are_found_and_replaced(sql: str, expected: str) -> None:
    assert marked(sql) == expected


@given(soups())
def test_a_call_is_a_name_before_a_parenthesis(text: str) -> None:
    try:
        calls = function_calls(text)
    except SiltError:
        return
    starts = {token.start: token for token in tokenize(text)}
    for call in calls:
        following = next(token for start, token in sorted(starts.items()) if start >= call.end)
        assert following.word == "("
        assert starts[call.start].kind in (Kind.WORD, Kind.QUOTED)
    assert len({call.start for call in calls}) == len(calls)


def test_a_table_and_a_function_of_the_same_name_are_distinguished() -> None:
    assert marked("select s.f(s.f.a) from s.f") == "select <s.f>(s.f.a) from s.f"
