"""Which incremental strategies there are, and what is said of one that there is not."""

from __future__ import annotations

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.silt.materializations.incremental.strategies import STRATEGIES, check_strategy

MACROS = [
    "ref",
    "get_incremental_default_sql",
    "get_incremental_only_new_sql",
    *(f"get_incremental_{each.replace('+', '_')}_sql" for each in STRATEGIES),
]


@pytest.mark.parametrize("strategy", [*STRATEGIES, "default", "only_new"])
def test_a_strategy_that_a_macro_writes_passes(strategy: str) -> None:
    check_strategy(strategy, MACROS, "shop")


@pytest.mark.parametrize(
    ("strategy", "hint"),
    [
        ("mergee", ": do you mean `merge`?"),
        ("MERGE", ": do you mean `merge`?"),
        ("delete_and_insert", ": do you mean `delete+insert`?"),
        ("overwrite", ": do you mean `insert_overwrite`?"),
        ("only_news", ": do you mean `only_new`?"),
        ("scd2", "."),
    ],
)
def test_an_unknown_one_is_refused_with_the_nearest_and_all_that_there_are(strategy: str, hint: str) -> None:
    with pytest.raises(CompilationError) as raised:
        check_strategy(strategy, MACROS, "shop")
    said = str(raised.value).strip()
    assert f'an incremental strategy macro with the name "get_incremental_{strategy}_sql" in shop{hint} ' in said
    known = "append, merge, delete+insert, insert_overwrite, replace_where, microbatch, only_new"
    assert said.endswith(f"`incremental_strategy` is one of {known}, or the project has such a macro")
