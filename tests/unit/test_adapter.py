"""Methods of the adapter that macros may call without a connection."""

from __future__ import annotations

from dbt.clients.jinja import get_rendered

from dbt.adapters.silt.impl import SiltAdapter


def test_an_undefined_name_can_be_quoted_while_dbt_parses() -> None:
    """Recce and macro packages quote variables that are set only when a query runs, not when dbt parses it."""
    assert get_rendered("{{ quote(column) }}", {"quote": SiltAdapter.quote}) == "``"


def test_a_backtick_in_a_name_is_doubled() -> None:
    assert get_rendered("{{ quote('a`b') }}", {"quote": SiltAdapter.quote}) == "`a``b`"
