"""What macros may call on the adapter without a connection."""

from __future__ import annotations

from dbt.clients.jinja import get_rendered

from dbt.adapters.silt.impl import SiltAdapter


def test_a_name_that_is_not_known_yet_is_quoted_while_dbt_parses() -> None:
    """Recce and packages of macros quote variables that are set when a query runs, and not when dbt parses it."""
    assert get_rendered("{{ quote(column) }}", {"quote": SiltAdapter.quote}) == "``"


def test_a_backtick_in_a_name_is_doubled() -> None:
    assert get_rendered("{{ quote('a`b') }}", {"quote": SiltAdapter.quote}) == "`a``b`"
