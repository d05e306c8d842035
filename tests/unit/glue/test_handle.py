"""Statements of a text, and where a profile's warehouse is."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt.adapters.silt.credentials import SiltCredentials
from dbt.adapters.silt.engine.kernel.errors import StatementSyntaxError
from dbt.adapters.silt.handle import environment_of, split_statements


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("select 1", ["select 1"]),
        ("select 1;", ["select 1"]),
        ('/* {"app": "dbt;"} */\nselect 1;\n-- ;\nselect \';\' as `a;b`;', ["select 1", "select ';' as `a;b`"]),
        ("set a = 1;\n\n;select 2 -- the end", ["set a = 1", "select 2"]),
        ("-- nothing\n;", []),
        ("", []),
        ("begin select 1; select 2; end", ["begin select 1; select 2; end"]),
    ],
)
def test_a_text_is_split_at_its_semicolons_and_nowhere_else(text: str, statements: list[str]) -> None:
    assert split_statements(text) == statements


def test_a_text_that_breaks_off_is_an_error() -> None:
    with pytest.raises(StatementSyntaxError):
        split_statements("select 'a; select 2")


def test_the_same_profile_has_one_environment_in_a_process(tmp_path: Path) -> None:
    first = environment_of(SiltCredentials(run_id="R1"), tmp_path)
    assert environment_of(SiltCredentials(run_id="R2"), tmp_path) is first
    assert environment_of(SiltCredentials(schema="other"), tmp_path) is not first
    assert environment_of(SiltCredentials(), tmp_path / "elsewhere") is not first


def test_names_are_answered_without_spark_and_without_making_anything(tmp_path: Path) -> None:
    environment = environment_of(SiltCredentials(databases={"raw": str(tmp_path / "raw")}), tmp_path)
    assert environment.catalog.databases() == ["raw", "silt"]
    assert environment.catalog.schemas("silt") == []
    assert list(tmp_path.iterdir()) == []
