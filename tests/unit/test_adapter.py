"""Methods of the adapter that macros may call without a connection."""

from __future__ import annotations

import pytest
from dbt.clients.jinja import get_rendered

from dbt.adapters.silt.column import SiltColumn
from dbt.adapters.silt.impl import SiltAdapter
from dbt.adapters.silt.relation import SiltRelation


def test_an_undefined_name_can_be_quoted_while_dbt_parses() -> None:
    """Recce and macro packages quote variables that are set only when a query runs, not when dbt parses it."""
    assert get_rendered("{{ quote(column) }}", {"quote": SiltAdapter.quote}) == "``"


def test_a_backtick_in_a_name_is_doubled() -> None:
    assert get_rendered("{{ quote('a`b') }}", {"quote": SiltAdapter.quote}) == "`a``b`"


def test_a_column_is_not_missing_if_its_name_is_in_another_case(monkeypatch: pytest.MonkeyPatch) -> None:
    """A macro that adds missing columns to a table would otherwise add a second `id`."""
    columns = {"new": ["ID", "name", "More"], "old": ["id", "Name"]}
    found = {name: [SiltColumn(each, "int") for each in names] for name, names in columns.items()}
    monkeypatch.setattr(SiltAdapter, "get_columns_in_relation", lambda _, relation: found[relation.identifier])
    new, old = (SiltRelation.create(schema="main", identifier=name) for name in ("new", "old"))
    adapter = object.__new__(SiltAdapter)
    assert [each.name for each in adapter.get_missing_columns(new, old)] == ["More"]
