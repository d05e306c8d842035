"""The statements of a text."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.kernel.errors import StatementSyntaxError
from dbt.adapters.silt.engine.sql.tokens import split_statements


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("select 1", ["select 1"]),
        ("select 1;", ["select 1"]),
        ('/* {"app": "dbt;"} */\nselect 1;\n-- ;\nselect \';\' as `a;b`;', ["select 1", "select ';' as `a;b`"]),
        ("set a = 1;\n\n;select 2 -- the end", ["set a = 1", "select 2"]),
        ("-- nothing\n;", []),
        ("\ufeffselect 1;\n\ufeffselect '\ufeff'", ["select 1", "select '\ufeff'"]),
        ("\ufeff\ufeff-- nothing\n;", []),
        ("\ufeffbegin select 1; select 2; end", [" begin select 1; select 2; end"]),
        ("", []),
        ("begin select 1; select 2; end", ["begin select 1; select 2; end"]),
    ],
)
def test_a_text_is_split_at_its_semicolons_and_nowhere_else(text: str, statements: list[str]) -> None:
    assert split_statements(text) == statements


def test_an_incomplete_text_is_an_error() -> None:
    with pytest.raises(StatementSyntaxError):
        split_statements("select 'a; select 2")
