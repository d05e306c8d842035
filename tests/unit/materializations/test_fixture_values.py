"""Values of fixtures for types to which strings cannot be cast."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.sql.query.quotes import Quotes
from dbt.adapters.silt.materializations.unit_tests.literals import nested_literal


@pytest.mark.parametrize(
    ("value", "kind", "expression"),
    [
        ("null", "array<int>", "try_cast(null as array<int>)"),
        ("tags", "array<int>", "try_cast(tags as array<int>)"),
        (r"'array(\'a\', \'it\\\'s\')'", "array<string>", r"try_cast(array('a', 'it\'s') as array<string>)"),
        ("'map(1, 2)'", "map<int,int>", "try_cast(map(1, 2) as map<int,int>)"),
        ("'[1, 2]'", "array<int>", "from_json('[1, 2]', 'array<int>', map('mode', 'FAILFAST'))"),
        (
            ["it's"],
            "array<string>",
            r"from_json('[\"it\'s\"]', 'array<string>', map('mode', 'FAILFAST'))".replace('\\"', '"'),
        ),
        ({"a": None}, "struct<a:int>", "from_json('{\"a\": null}', 'struct<a:int>', map('mode', 'FAILFAST'))"),
        ("'{\"a\": 1}'", "variant", "parse_json('{\"a\": 1}')"),
        (7, "variant", "parse_json('7')"),
    ],
)
def test_a_fixtures_value_becomes_an_expression_of_the_columns_type(value: object, kind: str, expression: str) -> None:
    assert nested_literal(value, kind) == expression


def test_a_fixtures_value_is_written_as_the_session_reads_it() -> None:
    quotes = Quotes(escaped_string_literals=True)
    written = nested_literal(["a\\b"], "array<string>", quotes)
    assert written == r"""from_json('["a\\b"]', 'array<string>', map('mode', 'FAILFAST'))"""
    assert nested_literal(r"""'["a\\b"]'""", "array<string>", quotes) == written
    assert nested_literal(["it's"], "array<string>", quotes).startswith("from_json(cast(X'")
