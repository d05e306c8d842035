"""A contract becomes the columns and constraints of a table's definition."""

from __future__ import annotations

from typing import Any

import pytest
from dbt_common.contracts.constraints import ModelLevelConstraint
from dbt_common.exceptions import CompilationError

from dbt.adapters.silt.materializations.contracts import constraint_sql, table_elements


def sql(constraint: dict[str, Any]) -> str | None:
    return constraint_sql(ModelLevelConstraint.from_dict(constraint))


def test_columns_come_before_the_constraints_of_columns_and_table() -> None:
    columns = {
        "id": {"name": "id", "data_type": "bigint", "constraints": [{"type": "not_null"}, {"type": "primary_key"}]},
        "from": {"name": "from", "data_type": "string", "description": "it's `from`"},
        "N": {"name": "N", "data_type": "int", "constraints": [{"type": "custom", "expression": "default 5"}]},
    }
    constraints = [{"type": "not_null", "columns": ["`FROM`", "n"]}, {"type": "unique", "columns": ["n"]}]
    assert table_elements(columns, constraints, sql, with_comments=False) == [
        "`id` bigint not null",
        "`from` string not null",
        "`N` int not null default 5",
        "primary key (`id`)",
        "unique (`n`)",
    ]
    assert table_elements(columns, [], sql, with_comments=True)[1] == "`from` string comment 'it\\'s `from`'"


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


@pytest.mark.parametrize("kind", ["check", "foreign_key", "custom"])
def test_a_constraint_without_an_expression_raises_an_error(kind: str) -> None:
    with pytest.raises(CompilationError, match=f"`{kind}` needs its `expression`"):
        sql({"type": kind, "columns": ["a"]})
