"""The configs of an incremental model, and the errors about invalid configs."""

from __future__ import annotations

from typing import Any

import pytest

from dbt.adapters.silt.materializations.incremental.config import problems


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"unique_key": ["a", "b"], "merge_update_columns": "name", "incremental_predicates": "a > 1"},
        {"skip_matched_step": "False", "skip_not_matched_step": True},
        {"not_matched_by_source_action": "\n  UPDATE  SET t.a = 1", "target_alias": "t"},
        {"merge_update_set_expressions": {"a": "1", "b": 2}, "merge_exclude_columns": ["c"]},
        {"merge_clauses": {"when_matched": [{"action": "update"}]}, "merge_update_columns": None, "unique_key": "a"},
        {"materialized": "incremental", "matched_condition": None, "owner": "me", "merged_by": "us", "keys": 1},
        {
            "incremental_predicates": [],
            "predicates": [],
            "merge_exclude_columns": [],
            "merge_update_set_expressions": {},
        },
        {"incremental_strategy": "insert_overwrite", "partition_by": ["a"], "liquid_clustered_by": []},
        {"incremental_strategy": "append", "partition_by": []},
        {"skip_matched_step": False, "merge_update_condition": "a > 1"},
        {"skip_equal_rows": True, "incremental_strategy": "merge"},
        {"skip_equal_rows": False, "incremental_strategy": "append"},
    ],
)
def test_a_valid_configuration_is_accepted(config: dict[str, Any]) -> None:
    assert list(problems(config)) == []


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"on_schema_change": "append_columns"},
            "`on_schema_change` must be one of `ignore`, `fail`, `append_new_columns`, `sync_all_columns`, but is "
            "'append_columns'",
        ),
        ({"matched_condition": ["a"]}, "`matched_condition` must be a condition in SQL, but is ['a']"),
        ({"skip_matched_step": "yes"}, "`skip_matched_step` must be true or false, but is 'yes'"),
        ({"merge_update_columns": {"a": 1}}, "`merge_update_columns` must be a string or a list"),
        ({"not_matched_by_source_action": "remove"}, "must be `delete` or `update set column = expression, ...`"),
        ({"not_matched_by_source_action": "delete where x"}, "must be `delete` or"),
        ({"not_matched_by_source_condition": "a = 1"}, "needs `not_matched_by_source_action`"),
        ({"skip_equal_rows": "yes"}, "`skip_equal_rows` must be true or false, but is 'yes'"),
        (
            {"skip_equal_rows": True, "incremental_strategy": "append"},
            "`skip_equal_rows` is for `incremental_strategy: merge`, and `append` compares no rows",
        ),
        ({"target_alias": "my table"}, "`target_alias` must be a name, but is 'my table'"),
        (
            {"matched_condition": "a = 1", "merge_clauses": {"when_matched": [{"action": "delete"}]}},
            "`matched_condition` of dbt-databricks and `merge_clauses` of dbt-duckdb cannot be given together",
        ),
        ({"merge_update_columns": ["a"], "merge_exclude_columns": ["b"]}, "cannot be given together: name one of them"),
        ({"skip_matched_step": True, "skip_not_matched_step": True}, "there is nothing to do"),
        (
            {"merge_update_condition": "a", "merge_clauses": {"when_matched": [{"action": "delete"}]}},
            "`merge_update_condition` cannot be given together with `merge_clauses`: put it into the clauses",
        ),
        ({"merge_clauses": ["a"]}, "`merge_clauses` must be a dictionary of lists of clauses"),
        ({"merge_clauses": {"when_merged": []}}, "`merge_clauses` may have `when_matched`"),
        ({"merge_clauses": {"when_matched": []}}, "must be a list of at least one clause"),
        (
            {"merge_clauses": {"when_matched": ["delete"]}},
            "clause 1 of `merge_clauses.when_matched` must be a dictionary",
        ),
        ({"merge_clauses": {"when_matched": [{"action": "insert"}]}}, "has the action 'insert', but matched takes"),
        (
            {"merge_clauses": {"when_not_matched": [{"action": "delete"}]}},
            "not matched takes `insert`, `do_nothing`, `error` (unmatched rows of the table need `by: source`)",
        ),
        ({"merge_clauses": {"when_not_matched": [{"action": "insert", "by": "me"}]}}, "`source` or `target`"),
        (
            {"merge_clauses": {"when_not_matched": [{"action": "update", "by": "source"}]}},
            "and therefore needs `set_expressions`",
        ),
        ({"merge_clauses": {"when_matched": [{"action": "update", "mode": "all"}]}}, "has the mode 'all'"),
        ({"merge_clauses": {"when_matched": [{"action": "delete", "conditions": "a"}]}}, "not `conditions`"),
        (
            {"merge_clauses": {"when_matched": [{"action": "delete", "condition": 1}]}},
            "has a `condition` that is not SQL",
        ),
        (
            {"merge_clauses": {"when_matched": [{"action": "update", "update": {"include": ["a"]}}]}},
            "names the columns to update, which needs `mode: explicit`",
        ),
        (
            {
                "merge_clauses": {
                    "when_not_matched": [
                        {"action": "insert", "mode": "explicit", "insert": {"columns": ["a", "b"], "values": ["1"]}}
                    ]
                }
            },
            "inserts 1 `values` into 2 `columns`",
        ),
    ],
)
def test_an_error_names_the_config_and_the_problem(config: dict[str, Any], message: str) -> None:
    assert message in "\n".join(problems(config))


@pytest.mark.parametrize(
    "name",
    [
        *("unique_key", "merge_update_columns", "merge_on_using_columns", "merge_exclude_columns", "predicates"),
        *("incremental_predicates", "matched_condition", "not_matched_condition", "merge_update_condition"),
        *("not_matched_by_source_action", "not_matched_by_source_condition", "source_alias", "skip_matched_step"),
    ],
)
@pytest.mark.parametrize("empty", ["", "  "])
def test_an_empty_string_is_refused(name: str, empty: str) -> None:
    [problem, *_] = problems({name: empty})
    assert problem.startswith(f"`{name}` must be ")
    assert problem.endswith(f"but is {empty!r}: leave it out; null removes the value that the project sets")


@pytest.mark.parametrize("name", ["unique_key", "merge_update_columns", "merge_on_using_columns"])
def test_an_empty_list_of_columns_is_refused_if_it_could_mean_all_or_no_columns(name: str) -> None:
    [problem] = problems({name: []})
    assert problem.startswith(f"`{name}` must be a string or a list of at least one string, but is []: leave it out")
    assert len(list(problems({name: ["a", " "]}))) == 1


@pytest.mark.parametrize("name", ["partition_by", "liquid_clustered_by"])
def test_insert_overwrite_refuses_an_empty_list_of_partitions(name: str) -> None:
    [problem] = problems({"incremental_strategy": "insert_overwrite", name: []})
    assert "would replace the whole table" in problem


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ({"action": "update", "condition": ""}, "has a `condition` that is not SQL: ''"),
        ({"action": "delete", "condition": []}, "has a `condition` that is not SQL: []"),
        ({"action": "update", "mode": "explicit", "update": {"include": []}}, "has an `update.include` that is empty"),
    ],
)
def test_a_clause_with_an_empty_list_or_condition_is_refused(clause: dict[str, Any], message: str) -> None:
    assert message in "\n".join(problems({"merge_clauses": {"when_matched": [clause]}}))


def test_all_problems_are_reported_together() -> None:
    assert len(list(problems({"target_alias": 1, "source_alias": 2}))) == 2
