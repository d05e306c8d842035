"""A contract becomes the columns and constraints of a table's definition."""

from __future__ import annotations

from typing import Any

import pytest
from dbt_common.contracts.constraints import ModelLevelConstraint
from dbt_common.exceptions import CompilationError

from dbt.adapters.silt.materializations.contracts import check_contract, constraint_sql, table_elements


def sql(constraint: dict[str, Any]) -> str | None:
    return constraint_sql(ModelLevelConstraint.from_dict(constraint))


def test_columns_come_before_the_constraints_of_columns_and_table() -> None:
    columns = {
        "id": {"name": "id", "data_type": "bigint", "constraints": [{"type": "not_null"}, {"type": "primary_key"}]},
        "from": {"name": "from", "data_type": "string", "description": "it's `from`"},
        "N": {"name": "N", "data_type": "int", "constraints": [{"type": "custom", "expression": "default 5"}]},
    }
    constraints = [{"type": "not_null", "columns": ["`FROM`", "n"]}, {"type": "unique", "columns": ["n"]}]
    assert table_elements(columns, constraints, sql, with_comments=False) == [  # type: ignore[arg-type]
        "`id` bigint not null",
        "`from` string not null",
        "`N` int not null default 5",
        "primary key (`id`)",
        "unique (`n`)",
    ]
    assert table_elements(columns, [], sql, with_comments=True)[1] == "`from` string comment 'it\\'s `from`'"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("constraint", "text"),
    [
        ({"type": "check", "expression": "a > 0", "name": "a-b"}, "constraint `a-b` check (a > 0)"),
        ({"type": "primary_key", "columns": ["a", "`b`"], "expression": "rely"}, "primary key (`a`, `b`) rely"),
        ({"type": "foreign_key", "columns": ["a"], "expression": "s.t (b)"}, "foreign key (`a`) references s.t (b)"),
        (
            {"type": "foreign_key", "columns": ["a"], "to": "`d`.`s`.`t`", "to_columns": ["b"]},
            "foreign key (`a`) references `d`.`s`.`t` (`b`)",
        ),
        ({"type": "custom", "expression": "check (a < 9)", "name": "`x`"}, "constraint `x` check (a < 9)"),
    ],
)
def test_a_constraint_is_spelled_for_spark(constraint: dict[str, Any], text: str) -> None:
    assert sql(constraint) == text


@pytest.mark.parametrize("kind", ["check", "custom"])
def test_a_constraint_without_an_expression_raises_an_error(kind: str) -> None:
    with pytest.raises(CompilationError, match=f"`{kind}` needs its `expression`"):
        sql({"type": kind, "columns": ["a"]})


def test_a_foreign_key_without_its_table_names_the_keys_that_it_needs() -> None:
    with pytest.raises(CompilationError, match="`foreign_key` needs the table that it refers to: add `to: ref"):
        sql({"type": "foreign_key", "columns": ["a"]})


@pytest.mark.parametrize("kind", ["primary_key", "unique", "foreign_key"])
def test_a_key_of_no_columns_is_refused(kind: str) -> None:
    with pytest.raises(CompilationError, match=f"`{kind}` needs its `columns`: add the list of columns"):
        sql({"type": kind, "expression": "main.orders"})


def test_each_type_of_a_contract_that_spark_lacks_is_named_with_its_column() -> None:
    columns = {each: {"name": each, "data_type": kind} for each, kind in {"a": "strng", "b": "int", "c": ""}.items()}
    with pytest.raises(CompilationError) as caught:
        check_contract(columns, {"strng": "Did you mean `string`?"}.get)
    assert str(caught.value).strip().endswith("does not have:\n    - `a` has `strng`. Did you mean `string`?")
    check_contract({"b": columns["b"]}, {}.get)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        ({"type": "primary_key", "columns": ["id"]}, "primary key (`id`) enforced"),
        ({"type": "unique", "columns": ["id"], "expression": "rely"}, "unique (`id`) rely enforced"),
        ({"type": "unique", "columns": ["id"], "expression": "NOT  ENFORCED"}, "unique (`id`) NOT  ENFORCED"),
        (
            {"type": "foreign_key", "columns": ["id"], "expression": "t (id)"},
            "foreign key (`id`) references t (id) enforced",
        ),
        ({"type": "check", "expression": "id > 0"}, "check (id > 0)"),
    ],
)
def test_by_default_of_the_profile_the_keys_that_can_be_enforced_are(
    constraint: dict[str, object], expected: str
) -> None:
    def render(given: dict[str, object]) -> str | None:
        return constraint_sql(ModelLevelConstraint.from_dict(given))

    found = table_elements({"id": {"name": "id", "data_type": "int"}}, [constraint], render, False, enforced_keys=True)
    assert found == ["`id` int", expected]
