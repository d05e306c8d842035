"""The ALTER TABLE statements that make a table match the definition in its model."""

from __future__ import annotations

from typing import Any

import pytest

from dbt.adapters.silt.engine.kernel.errors import InvalidPropertyError
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructField, StructType
from dbt.adapters.silt.materializations.definition_changes import alterations, named_columns
from dbt.adapters.silt.materializations.partitioning import Clustering

SCHEMA = StructType(
    (StructField("Id", PrimitiveType("long"), nullable=False), StructField("name", PrimitiveType("string")))
)
COLUMNS = ("`id` bigint not null", "`name` string")
CHECKS = {"delta.constraints.check_1": "id > 0", "delta.constraints.by_hand": "id < 9"}


def changes(there: dict[str, str], properties: dict[str, Any] | None = None, *elements: str) -> list[str]:
    return alterations(SCHEMA, there, properties or {}, elements)


def test_properties_that_differ_are_set_in_one_statement() -> None:
    there = {"delta.appendOnly": "false", "team": "sales", "left": "alone"}
    wanted = {"delta.appendonly": True, "team": "sales", "it's": 1}
    assert changes(there, wanted) == ["set tblproperties ('delta.appendOnly' = 'True', 'it\\'s' = '1')"]


def test_properties_that_the_table_already_has_cause_no_statement() -> None:
    there = {"delta.appendOnly": "true", "team": "sales", **CHECKS}
    wanted = {"delta.appendOnly": True, "team": "sales"}
    assert changes(there, wanted, *COLUMNS, "check (id  >\n0)") == []
    assert changes(there, wanted) == [], "without a contract, constraints are nobody's"


def test_properties_of_features_and_comments_are_not_compared() -> None:
    wanted = {"delta.feature.deletionVectors": "supported", "delta.minReaderVersion": 3, "comment": "text"}
    assert changes({}, wanted) == []


def test_a_property_that_cannot_be_set_is_refused() -> None:
    with pytest.raises(InvalidPropertyError):
        changes({}, {"delta.appendOnlly": "true"})


@pytest.mark.parametrize(
    ("elements", "expected"),
    [
        (["check (id > 1)"], ["drop constraint `check_1`", "add check (id > 1\n)"]),
        ([], ["drop constraint `check_1`"]),
        (["check (id > 0)", "constraint `Short` check (name < 'x')"], ["add constraint `Short` check (name < 'x'\n)"]),
        (
            ["check (id > 0)", "constraint by_hand check (id < 10)"],
            ["drop constraint `by_hand`", "add constraint `by_hand` check (id < 10\n)"],
        ),
        (["check (id > 0)", "constraint BY_HAND check (id < 9)"], []),
        (["check (id > 0)", "primary key (`id`)"], []),
    ],
)
def test_checks_follow_the_contract_and_named_checks_that_it_lacks_are_kept(
    elements: list[str], expected: list[str]
) -> None:
    assert changes(CHECKS, None, *COLUMNS, *elements) == expected


def test_not_null_follows_the_contract() -> None:
    found = changes({}, None, "`ID` bigint", "`Name` string not null", "`later` int not null")
    assert found == ["alter column `Id` drop not null", "alter column `name` set not null"]
    assert changes({}, None, "`name` string") == [], "a column that the contract does not have"


@pytest.mark.parametrize(
    ("constraints", "clustered_by", "named"),
    [
        (["check (SIZE > id)", "check (s.x > 1)"], (), {"size", "id", "s"}),
        (["unique (late, `Id`) enforced", "unique (size)"], (), {"late", "id"}),
        ([], ("Late", "s.`X`"), {"late", "s"}),
    ],
)
def test_checks_and_enforced_keys_and_clustering_name_columns_that_a_table_must_have(
    constraints: list[str], clustered_by: tuple[str, ...], named: set[str]
) -> None:
    columns = ("`id` int", "`size` int", "`late` int", "`s` struct<x: int>")
    assert named_columns([*columns, *constraints], Clustering("cluster_by", clustered_by)) == named
    assert named_columns([], Clustering()) == set()


ENFORCED = {"silt.constraints.primary_key_1": '{"kind": "primary key", "columns": ["Id"], "enforced": true}'}
RECORDED = {"silt.constraints.pk": '{"kind": "primary key", "columns": ["name"]}'}
BY_HAND = {"silt.constraints.by_hand": '{"kind": "unique", "columns": ["name"], "enforced": true}'}


@pytest.mark.parametrize(
    ("there", "elements", "expected"),
    [
        ({}, ["primary key (id) enforced"], ["add primary key (`id`) enforced"]),
        ({}, ["constraint k unique (id, name) enforced"], ["add constraint `k` unique (`id`, `name`) enforced"]),
        (ENFORCED, ["primary key (id) enforced"], []),
        (ENFORCED, ["primary key (id)"], ["drop constraint `primary_key_1`", "add primary key (`id`)"]),
        (ENFORCED, [], ["drop constraint `primary_key_1`"]),
        (BY_HAND, [], []),
        (BY_HAND, ["unique (name) not enforced"], ["drop constraint `by_hand`", "add unique (`name`)"]),
        (RECORDED, ["primary key (id) enforced"], ["drop constraint `pk`", "add primary key (`id`) enforced"]),
        (RECORDED, ["primary key (name)"], []),
        (RECORDED, [], []),
    ],
)
def test_enforced_keys_are_added_and_dropped(there: dict[str, str], elements: list[str], expected: list[str]) -> None:
    columns = [*COLUMNS, *(each for each in elements if each.startswith("`"))]
    assert changes(there, {}, *columns, *(each for each in elements if not each.startswith("`"))) == expected
