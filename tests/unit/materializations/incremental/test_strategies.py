"""The incremental strategies, and the errors about an unknown strategy and a missing key."""

from __future__ import annotations

from typing import Any

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.silt.materializations.incremental.strategies import STRATEGIES, check_strategy, key_warning

MACROS = [
    "ref",
    "get_incremental_default_sql",
    "get_incremental_only_new_sql",
    *(f"get_incremental_{each.replace('+', '_')}_sql" for each in STRATEGIES),
]


@pytest.mark.parametrize("strategy", [*STRATEGIES, "default", "only_new"])
def test_a_strategy_with_a_macro_is_accepted(strategy: str) -> None:
    check_strategy(strategy, MACROS, "shop")


@pytest.mark.parametrize(
    ("strategy", "hint"),
    [
        ("mergee", ": did you mean `merge`?"),
        ("MERGE", ": did you mean `merge`?"),
        ("delete_and_insert", ": did you mean `delete+insert`?"),
        ("overwrite", ": did you mean `insert_overwrite`?"),
        ("only_news", ": did you mean `only_new`?"),
        ("scd2", "."),
    ],
)
def test_an_unknown_strategy_is_refused_with_the_nearest_name_and_all_names(strategy: str, hint: str) -> None:
    with pytest.raises(CompilationError) as raised:
        check_strategy(strategy, MACROS, "shop")
    said = str(raised.value).strip()
    assert f'an incremental strategy macro with the name "get_incremental_{strategy}_sql" in shop{hint} ' in said
    known = "append, merge, delete+insert, insert_overwrite, replace_where, microbatch, changed_keys, only_new"
    assert said.endswith(f"Set `incremental_strategy` to one of {known}, or define that macro in the project")


def test_the_name_of_the_macro_of_a_strategy_is_refused_with_the_name_of_the_strategy() -> None:
    """dbt would accept it, but then a missing key would cause no warning, and a rerun would not repeat the model."""
    with pytest.raises(CompilationError, match=r"is 'delete_insert': write `delete\+insert`"):
        check_strategy("delete_insert", MACROS, "shop")


@pytest.mark.parametrize("strategy", ["merge", "delete+insert"])
@pytest.mark.parametrize("key", [None, [], ""])
def test_a_strategy_that_lacks_its_key_warns_that_it_appends(strategy: str, key: Any) -> None:
    said = key_warning({"incremental_strategy": strategy, "unique_key": key})
    assert said is not None
    assert said.startswith(f"`{strategy}` without `unique_key` cannot match rows of the table: each run appends")


@pytest.mark.parametrize(
    "config",
    [
        {"incremental_strategy": "merge", "unique_key": "id"},
        {"incremental_strategy": "merge", "merge_on_using_columns": ["id"]},
        {"incremental_strategy": "merge", "not_matched_by_source_action": "delete"},
        {"incremental_strategy": "merge", "not_matched_condition": "source.id > 3"},
        {"incremental_strategy": "merge", "skip_not_matched_step": "true"},
        {"incremental_strategy": "delete+insert", "unique_key": ["id", "day"]},
        {"incremental_strategy": "append"},
        {"incremental_strategy": "insert_overwrite"},
        {"incremental_strategy": None},
        {},
    ],
)
def test_a_strategy_that_has_its_key_or_needs_no_key_causes_no_warning(config: dict[str, Any]) -> None:
    assert key_warning(config) is None
