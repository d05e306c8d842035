"""The WHEN clauses of a model's configuration."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.silt.materializations.incremental.config_columns import column_named, qualified, qualify_condition
from dbt.adapters.silt.materializations.incremental.merge_clauses import Sides, WhenClause, merge_clauses

SIDES = Sides(("id", "Na`me"), given=("b", "a"), target="t", source="s")
UPDATE_ALL = "update set `id` = s.`id`, `Na``me` = s.`Na``me`"
INSERT_ALL = "insert (`id`, `Na``me`) values (s.`id`, s.`Na``me`)"


def clauses(**config: Any) -> list[WhenClause]:
    return merge_clauses(config, SIDES)


def test_without_configuration_rows_are_updated_and_inserted() -> None:
    assert clauses() == [WhenClause("matched", UPDATE_ALL), WhenClause("not matched", INSERT_ALL)]


def test_conditions_and_steps_of_dbt_databricks_become_clauses() -> None:
    found = clauses(
        skip_matched_step="true",
        not_matched_condition="s.id > 1",
        not_matched_by_source_action=" delete ",
        not_matched_by_source_condition="t.id < 9",
    )
    assert found == [
        WhenClause("not matched", INSERT_ALL, "(s.id > 1)"),
        WhenClause("not matched by source", "delete", "(t.id < 9)"),
    ]


def test_a_merge_without_columns_to_update_has_no_update_clause() -> None:
    assert clauses(merge_exclude_columns=["ID", "na`me"]) == [WhenClause("not matched", INSERT_ALL)]


def test_expressions_replace_the_models_values() -> None:
    [matched, _] = clauses(merge_update_set_expressions={"ID": "t.id + 1"})
    assert matched.action == "update set `id` = t.id + 1, `Na``me` = s.`Na``me`"


def test_rows_that_a_clause_keeps_unchanged_are_excluded_from_later_clauses() -> None:
    found = clauses(
        merge_clauses={
            "when_matched": [
                {"action": "do_nothing", "condition": ["a", "b"]},
                {"action": "delete", "condition": "c"},
                {"action": "do_nothing"},
                {"action": "update"},
            ],
            "when_not_matched": [{"action": "do_nothing"}],
        }
    )
    assert found == [WhenClause("matched", "delete", "(not coalesce((a) and (b), false)) and (c)")]


def test_an_error_clause_raises_an_error_for_a_matching_row() -> None:
    given = [{"action": "error", "error_message": "it's there"}, {"action": "error", "by": "source"}]
    found = clauses(merge_clauses={"when_matched": given[:1], "when_not_matched": given})
    texts = [each.action for each in found]
    assert texts[0] == r"update set `id` = raise_error('it\'s there')"
    assert texts[1] == r"insert (`id`, `Na``me`) values (raise_error('it\'s there'), s.`Na``me`)"
    assert texts[2].startswith("update set `id` = raise_error('a row was found that is not matched by source")


def test_a_clause_may_assign_columns_by_position() -> None:
    given = {
        "when_matched": [{"action": "update", "mode": "by_position"}],
        "when_not_matched": [{"action": "do_nothing"}],
    }
    [matched] = clauses(merge_clauses=given)
    assert matched.action == "update set `id` = s.`b`, `Na``me` = s.`a`"


def test_values_parsed_by_yaml_are_written_as_sql() -> None:
    insert = {"columns": ["id", "na`me"], "values": [None, True]}
    [_, found] = clauses(
        merge_clauses={"when_not_matched": [{"action": "insert", "mode": "explicit", "insert": insert}]}
    )
    assert found.action == "insert (`id`, `Na``me`) values (null, true)"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"merge_update_columns": ["nme"]},
            "`merge_update_columns` names nme, which is not one of the columns id, Na`me",
        ),
        ({"merge_update_set_expressions": {"x": "1"}}, "`set_expressions` names x"),
        (
            {"merge_update_set_expressions": {" ": "1"}},
            "`set_expressions` names an empty string, which is not one of the columns id, Na`me",
        ),
        (
            {
                "merge_clauses": {
                    "when_matched": [{"action": "do_nothing"}],
                    "when_not_matched": [{"action": "do_nothing"}],
                }
            },
            "does nothing: no row is updated",
        ),
    ],
)
def test_invalid_clauses_are_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(CompilationError) as raised:
        clauses(**config)
    assert message in str(raised.value)


@pytest.mark.parametrize("text", ["group by", "`group by`", '"Group By"', " GROUP BY "])
def test_a_column_is_recognized_with_any_quotes(text: str) -> None:
    assert column_named(text, ["id", "group by"]) == "group by"
    assert qualified(text, ["id", "group by"], "s", "unique_key") == "s.`group by`"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("key.id", "(`s`.key.id)"),
        ("date_trunc('day', at)", "(date_trunc('day', `s`.at))"),
        ("cast(at as date) || key", "(cast(`s`.at as date) || `s`.key)"),
    ],
)
def test_an_expressions_columns_are_qualified(text: str, expected: str) -> None:
    assert qualified(text, ["key", "at", "date"], "s", "unique_key") == expected


def test_a_string_without_a_column_is_not_a_key() -> None:
    with pytest.raises(CompilationError, match="`unique_key` names nowhere, which is not one of the columns id"):
        qualified("nowhere", ["id"], "s", "unique_key")


def test_the_error_about_an_empty_string_names_it_as_empty() -> None:
    with pytest.raises(
        CompilationError, match="`unique_key` names an empty string, which is not one of the columns id"
    ):
        qualified(" ", ["id"], "s", "unique_key")


def test_columns_by_position_must_be_as_many_as_the_tables_columns() -> None:
    given = {"when_matched": [{"action": "update", "mode": "by_position"}]}
    with pytest.raises(CompilationError, match="the model returns 1 columns and the table has 2: return as many"):
        merge_clauses({"merge_clauses": given}, Sides(("id", "name"), given=("id",)))


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("size > 5 and DBT_INTERNAL_DEST.id = 1", "`t`.size > 5 and DBT_INTERNAL_DEST.id = 1"),
        ("s.id = 1 or id in (select id from other)", "s.id = 1 or `t`.id in (select id from other)"),
        ("1 = 1", "1 = 1"),
    ],
)
def test_unqualified_columns_of_a_condition_are_qualified_with_the_table(condition: str, expected: str) -> None:
    assert qualify_condition(condition, ["id", "size"], "t") == expected


def test_keys_of_deleted_rows_are_deleted_and_not_inserted() -> None:
    sides = replace(SIDES, gone="s.`_change_type` = 'delete'")
    assert merge_clauses({"not_matched_condition": "s.id > 1"}, sides) == [
        WhenClause("matched", "delete", "s.`_change_type` = 'delete'"),
        WhenClause("matched", UPDATE_ALL),
        WhenClause("not matched", INSERT_ALL, "(not (s.`_change_type` = 'delete')) and ((s.id > 1))"),
    ]
