"""Draws tables and the tests of their rows."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "id": ("1", "2", "3", "4", "5", "6", "7", "null"),
    "word": ("'one'", "'two'", "'Three'", "''", "' '", "'it''s'", "'ünï'", "null"),
    "price": ("0.10", "1.00", "2.50", "-3.00", "99999999.99", "null"),
    "ratio": ("0.5e0", "-0.0e0", "1e300", "double('NaN')", "double('Infinity')", "null"),
    "day": ("date'2024-02-29'", "date'2025-01-01'", "date'1999-12-31'", "null"),
    "moment": ("timestamp'2024-03-31 01:30:00'", "timestamp'2024-03-31 03:30:00'", "null"),
    "flag": ("true", "false", "null"),
}
_TYPES: Final = {
    "id": "int",
    "word": "string",
    "price": "decimal(10, 2)",
    "ratio": "double",
    "day": "date",
    "moment": "timestamp",
    "flag": "boolean",
}
_CONDITIONS: Final = (
    *("{c} is null", "{c} <=> null", "not ({c} is not null)", "{c} = {c}", "{c} <> {v}", "{c} in ({v}, {w})"),
    *(
        "{c} not in ({v}, null)",
        "coalesce({c} = {v}, true)",
        "({c} = {v}) is not true",
        "case when {c} = {v} then true end",
    ),
)
_OF_RELATIONS: Final = ("dbt_utils.equality",)
"""Tests that take no `where`."""
_COMPARISONS: Final = ("!= 0", "> 1", ">= 2", "= 3", "between 1 and 2", "> 1000")


@dataclass(frozen=True)
class Drawn:
    """A model and its tests.

    Attributes:
        query: the model's SQL.
        of_columns: the tests of each column, as in a properties file.
        of_model: the tests of the model.
        singular: the SQL of singular tests, by name.
    """

    query: str
    of_columns: Mapping[str, list[Any]]
    of_model: list[Any]
    singular: Mapping[str, str]


def draw(seed: int, name: str, packages: frozenset[str]) -> Drawn:
    """Draws a model of that name, whose tests use dbt's macros and those of the packages."""
    chance = random.Random(seed)
    rows = [[chance.choice(values) for values in _COLUMNS.values()] for _ in range(chance.randint(1, 9))]
    columns = ", ".join(_COLUMNS)
    values = ",\n  ".join(f"({', '.join(row)})" for row in rows)
    casts = ", ".join(f"cast({column} as {_TYPES[column]}) as {column}" for column in _COLUMNS)
    query = f"select {casts}\nfrom values\n  {values}\nas drawn({columns})"
    if chance.random() < 0.1:
        query += "\nwhere false"
    of_columns = {column: list(_of_column(chance, column, packages)) for column in _COLUMNS}
    return Drawn(query, of_columns, list(_of_model(chance, packages)), dict(_singular(chance, name)))


def _configured(chance: random.Random, test: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
    config: dict[str, Any] = {"severity": chance.choice(("error", "warn"))}
    if chance.random() < 0.4:
        config["error_if"] = chance.choice(_COMPARISONS)
    if chance.random() < 0.4:
        config["warn_if"] = chance.choice(_COMPARISONS)
    if chance.random() < 0.3 and test not in _OF_RELATIONS:
        column = chance.choice(list(_COLUMNS))
        config["where"] = _condition(chance, column)
    if chance.random() < 0.2:
        config["limit"] = chance.randint(1, 3)
    if chance.random() < 0.2:
        config["fail_calc"] = chance.choice(("count(*)", "count(*) + 1", "count(distinct 1)", "coalesce(sum(2), 0)"))
    return {test: {**({"arguments": dict(arguments)} if arguments else {}), "config": config}}


def _condition(chance: random.Random, column: str) -> str:
    first, second = (chance.choice(_COLUMNS[column][:-1]) for _ in range(2))
    return chance.choice(_CONDITIONS).format(c=column, v=first, w=second)


def _of_column(chance: random.Random, column: str, packages: frozenset[str]) -> Iterator[Any]:
    values = [chance.choice(_COLUMNS[column][:-1]) for _ in range(2)]
    known: list[tuple[str, dict[str, Any] | None]] = [
        ("not_null", None),
        ("unique", None),
        ("accepted_values", {"values": values, "quote": False}),
        ("relationships", {"to": "ref('parent')", "field": column}),
    ]
    if "dbt_utils" in packages:
        known += [
            ("dbt_utils.not_constant", None),
            ("dbt_utils.at_least_one", None),
            ("dbt_utils.not_null_proportion", {"at_least": 0.5}),
            ("dbt_utils.not_accepted_values", {"values": values, "quote": False}),
            ("dbt_utils.cardinality_equality", {"to": "ref('parent')", "field": column}),
            ("dbt_utils.relationships_where", {"to": "ref('parent')", "field": column, "from_condition": "flag"}),
        ]
        if column in ("id", "price", "ratio"):
            known += [
                ("dbt_utils.accepted_range", {"min_value": 0, "max_value": 5, "inclusive": chance.random() < 0.5}),
                ("dbt_utils.sequential_values", {"interval": 1}),
            ]
        if column == "word":
            known += [("dbt_utils.not_empty_string", None)]
    if "dbt_expectations" in packages:
        known += [
            (f"dbt_expectations.expect_column_values_to_{name}", arguments)
            for name, arguments in (
                ("be_null", None),
                ("not_be_null", None),
                ("be_unique", None),
                ("be_in_set", {"value_set": values, "quote_values": False}),
                ("not_be_in_set", {"value_set": values, "quote_values": False}),
                ("be_of_type", {"column_type": _TYPES[column]}),
                ("be_increasing", {"sort_column": "id"}),
            )
        ]
        if column in ("id", "price", "ratio"):
            known += [
                ("dbt_expectations.expect_column_values_to_be_between", {"min_value": 0, "max_value": 5}),
                ("dbt_expectations.expect_column_max_to_be_between", {"min_value": 1, "max_value": 5}),
                ("dbt_expectations.expect_column_mean_to_be_between", {"min_value": 1, "max_value": 5}),
                ("dbt_expectations.expect_column_sum_to_be_between", {"min_value": 1, "max_value": 50}),
            ]
        if column == "word":
            known += [
                ("dbt_expectations.expect_column_value_lengths_to_be_between", {"min_value": 1, "max_value": 3}),
                ("dbt_expectations.expect_column_values_to_match_regex", {"regex": "^[a-z]+$"}),
                ("dbt_expectations.expect_column_values_to_not_match_like_pattern", {"like_pattern": "t%"}),
            ]
    for test, arguments in chance.sample(known, min(len(known), 3)):
        yield _configured(chance, test, arguments)


def _of_model(chance: random.Random, packages: frozenset[str]) -> Iterator[Any]:
    expression = _condition(chance, chance.choice(list(_COLUMNS)))
    known: list[tuple[str, dict[str, Any]]] = []
    if "dbt_utils" in packages:
        known += [
            ("dbt_utils.expression_is_true", {"expression": expression}),
            ("dbt_utils.unique_combination_of_columns", {"combination_of_columns": ["id", "word"]}),
            ("dbt_utils.equal_rowcount", {"compare_model": "ref('parent')"}),
            ("dbt_utils.fewer_rows_than", {"compare_model": "ref('parent')"}),
            ("dbt_utils.equality", {"compare_model": "ref('parent')"}),
        ]
    if "dbt_expectations" in packages:
        known += [
            ("dbt_expectations.expression_is_true", {"expression": expression}),
            ("dbt_expectations.expect_table_row_count_to_be_between", {"min_value": 2, "max_value": 6}),
            ("dbt_expectations.expect_compound_columns_to_be_unique", {"column_list": ["id", "word"]}),
            ("dbt_expectations.expect_column_pair_values_to_be_equal", {"column_A": "id", "column_B": "price"}),
            ("dbt_expectations.expect_table_column_count_to_equal", {"value": 7}),
            ("dbt_expectations.expect_table_columns_to_contain_set", {"column_list": ["id", "flag"]}),
        ]
    for test, arguments in chance.sample(known, min(len(known), 3)):
        yield _configured(chance, test, arguments)


def _singular(chance: random.Random, name: str) -> Iterator[tuple[str, str]]:
    column = chance.choice(list(_COLUMNS))
    condition = _condition(chance, column)
    qualified = _condition(chance, column).replace(column, f"t.{column}")
    queries = (
        f"select * from {{{{ ref('{name}') }}}} where {condition}",
        f"select t.{column} from {{{{ ref('{name}') }}}} as t where {qualified}",
        f"with rows as (select * from {{{{ ref('{name}') }}}}) select * from rows where {condition}",
        f"select {column}, count(*) as n from {{{{ ref('{name}') }}}} group by 1 having count(*) > 1",
        f"select distinct {column} from {{{{ ref('{name}') }}}} where {condition}",
        f"select * from {{{{ ref('{name}') }}}} where {condition} limit 2",
        f"select * from {{{{ ref('{name}') }}}} where id in (select id from {{{{ ref('parent') }}}})",
        f"select {column} from {{{{ ref('{name}') }}}} except select {column} from {{{{ ref('parent') }}}}",
        f"select sum(id) as s from {{{{ ref('{name}') }}}}",
        f"select * from {{{{ ref('{name}') }}}}",
    )
    for number, query in enumerate(chance.sample(queries, 3)):
        yield f"{name}_{number}", query
