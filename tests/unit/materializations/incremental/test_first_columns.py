"""The columns in an incremental model's configuration are checked before its table is created."""

from __future__ import annotations

from typing import Any

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.silt.materializations.incremental.strategies import (
    check_columns,
    check_predicates,
    exclusion_warning,
    names_columns,
)

COLUMNS = ("Id", "day of", "name")


@pytest.mark.parametrize(
    ("strategy", "config"),
    [
        ("default", {"unique_key": "id"}),
        ("merge", {"unique_key": ["`ID`", '"day of"']}),
        ("merge", {"unique_key": "upper(name)"}),
        ("merge", {"unique_key": "gone", "merge_on_using_columns": ["id"]}),
        ("merge", {"merge_exclude_columns": ["name"], "merge_update_set_expressions": {"name": "'x'"}}),
        ("delete+insert", {"unique_key": ["id", "date_trunc('day', `day of`)"]}),
        ("merge", {"unique_key": "id", "merge_exclude_columns": ["gone"]}),
        ("insert_overwrite", {"partition_by": {"field": "day of", "data_type": "date"}}),
        ("append", {"unique_key": "gone"}),
        ("microbatch", {"unique_key": "gone"}),
        ("default", {}),
    ],
)
def test_columns_of_the_model_are_accepted(strategy: str, config: dict[str, Any]) -> None:
    check_columns(config, strategy, COLUMNS)


@pytest.mark.parametrize(
    ("strategy", "config", "setting"),
    [
        ("default", {"unique_key": "nope"}, "unique_key"),
        ("merge", {"unique_key": ["id", "nope"]}, "unique_key"),
        ("merge", {"unique_key": "upper(nope)"}, "unique_key"),
        ("merge", {"unique_key": "id", "merge_on_using_columns": "nope"}, "merge_on_using_columns"),
        ("merge", {"unique_key": "id", "merge_update_columns": ["nope"]}, "merge_update_columns"),
        ("merge", {"unique_key": "id", "merge_update_set_expressions": {"nope": "1"}}, "set_expressions"),
        (
            "merge",
            {
                "unique_key": "id",
                "merge_clauses": {
                    "when_not_matched": [
                        {"action": "insert", "mode": "explicit", "insert": {"columns": ["nope"], "values": ["1"]}}
                    ]
                },
            },
            "insert.columns",
        ),
        ("delete+insert", {"unique_key": "nope"}, "unique_key"),
        ("changed_keys", {"unique_key": "nope"}, "unique_key"),
        ("changed_keys", {"group_key": ["id", "nope"]}, "group_key"),
    ],
)
def test_an_unknown_column_is_refused_with_the_config_and_the_existing_columns(
    strategy: str, config: dict[str, Any], setting: str
) -> None:
    assert names_columns(config, strategy)
    with pytest.raises(CompilationError, match=rf"`{setting}` names .*nope.* one of the columns Id, day of, name"):
        check_columns(config, strategy, COLUMNS)


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"unique_key": ["id", "name", '"ID"']}, "`unique_key` names `id` twice: name each column once"),
        ({"merge_on_using_columns": ["id", " `id`"]}, "`merge_on_using_columns` names `id` twice"),
        (
            {"unique_key": "id", "merge_update_columns": ["name", "id", "ID", "Name"]},
            "`merge_update_columns` names `id`, `name` twice",
        ),
    ],
)
def test_a_column_that_is_named_twice_is_refused(config: dict[str, Any], problem: str) -> None:
    with pytest.raises(CompilationError, match=problem):
        check_columns(config, "merge", COLUMNS)


@pytest.mark.parametrize(
    ("strategy", "config"),
    [("append", {"unique_key": "id"}), ("default", {}), ("delete+insert", {}), ("replace_where", {"unique_key": "id"})],
)
def test_columns_are_not_checked_for_a_strategy_that_does_not_use_them(strategy: str, config: dict[str, Any]) -> None:
    assert not names_columns(config, strategy)


@pytest.mark.parametrize("config", [{}, {"incremental_predicates": []}, {"predicates": None}])
def test_a_table_for_replace_where_is_refused_without_predicates(config: dict[str, Any]) -> None:
    with pytest.raises(CompilationError, match="'replace_where' needs `incremental_predicates`"):
        check_predicates(config, "replace_where")
    check_predicates({"predicates": "id > 1"}, "replace_where")
    check_predicates(config, "append")


def test_a_misspelt_column_that_a_merge_should_not_update_is_named() -> None:
    """It would be updated at every run, without an error."""
    assert exclusion_warning({"merge_exclude_columns": ["id", "`nme`"]}, ["id", "name"]) == (
        "`merge_exclude_columns` names `nme`, which is not one of the columns id, name, so `name` is updated: did you "
        "mean `name`?"
    )


@pytest.mark.parametrize("excluded", [None, [], "NAME", ["`id`", "created_at"]])
def test_columns_that_a_project_excludes_in_all_models_cause_no_warning(excluded: Any) -> None:
    assert exclusion_warning({"merge_exclude_columns": excluded}, ["id", "name", "updated_at"]) is None
