"""The clause of the strategy `changed_keys`, and the configurations that it refuses."""

from __future__ import annotations

from typing import Any

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.silt.materializations.incremental.changed_keys import changed_keys_clause
from dbt.adapters.silt.materializations.incremental.config import problems


def model(code: str = "select 1", language: str = "sql", **config: Any) -> dict[str, Any]:
    return {"name": "totals", "raw_code": code, "language": language, "config": config}


@pytest.mark.parametrize(
    ("config", "clause"),
    [
        ({"unique_key": "id"}, "changed keys (`id`)"),
        ({"group_key": ["region", "`day`"]}, "changed keys (`region`, `day`)"),
        (
            {"unique_key": ["id"], "key_columns": {"main.orders": "buyer_id", "returns": ["client"]}},
            "changed keys (`id`) mapped to `main`.`orders` (`buyer_id`), `returns` (`client`)",
        ),
        ({"unique_key": "id", "on_unsupported_query": "full_refresh"}, "changed keys (`id`) or replace all"),
        ({"unique_key": "id", "on_unsupported_query": "fail"}, "changed keys (`id`)"),
    ],
)
def test_the_clause_names_the_key(config: dict[str, Any], clause: str) -> None:
    assert changed_keys_clause(model(**config)) == clause


@pytest.mark.parametrize(
    "given",
    [model("select 1 {% if is_incremental () %} where 1 = 0 {% endif %}"), model("def model(dbt, s): ...", "python")],
)
def test_the_model_must_be_a_plain_select(given: dict[str, Any]) -> None:
    with pytest.raises(CompilationError, match="plain SELECT"):
        changed_keys_clause(given)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "needs either `unique_key`"),
        ({"unique_key": "a", "group_key": "b"}, "needs either `unique_key`"),
        ({"unique_key": "a", "incremental_predicates": "a > 1"}, "`incremental_predicates` cannot be given"),
        ({"unique_key": "a", "on_unsupported_query": "ignore"}, "`on_unsupported_query` must be one of"),
        ({"unique_key": "a", "key_columns": ["a"]}, "`key_columns` must be a dictionary"),
        ({"group_key": []}, "`group_key` must be"),
        ({"unique_key": "a", "incremental_strategy": "merge", "key_columns": {"a": "b"}}, "`key_columns` is for"),
    ],
)
def test_configs_that_contradict_each_other_are_refused(config: dict[str, Any], message: str) -> None:
    assert any(message in each for each in problems({"incremental_strategy": "changed_keys", **config}))


def test_a_key_and_its_columns_pass() -> None:
    given = {"incremental_strategy": "changed_keys", "group_key": ["a", "b"], "key_columns": {"t": ["x", "y"]}}
    assert list(problems(given)) == []
