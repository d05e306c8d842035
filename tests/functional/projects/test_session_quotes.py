"""A project whose session treats "x" as a name and a backslash as a literal backslash."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt

MODELS = {
    "words.sql": """
{{ config(materialized='table', description='it''s') }}
select 1 as "id", 'a1' as "word" union all select 2, 'b\\2' union all select 3, 'c'
""",
    "digits.sql": """
{{ config(materialized='incremental', unique_key='id', incremental_strategy='merge') }}
select "id", "word" from {{ ref('words') }} where "word" rlike '\\d'
""",
    "shown.sql": """
select "id" as "the id", regexp_replace("word", '\\W', "{{ '' }}'-'") as "word" from {{ ref('digits') }}
""".replace("\"{{ '' }}'-'\"", "'-'"),
    "nested.sql": "select array('x') as list",
    "lists.sql": "select length(list[0]) as length, list[0] as first from {{ ref('nested') }}",
    "escaped.sql": """
select '{{ dbt.escape_single_quotes("a\\\\b") }}' as text
""",
    "held.sql": """
select "id", "word" from {{ ref('words') }}
""",
    "properties.yml": r"""
version: 2
models:
  - name: words
    description: "it's a \\d \"word\""
    columns:
      - name: id
        description: 'a\b'
        data_tests: [unique, not_null, {accepted_values: {values: [1, 2, 3], quote: false}}]
      - name: word
        data_tests: [{accepted_values: {values: ["a1", 'b\2', "c"]}}]
  - name: held
    config: {materialized: table, contract: {enforced: true}}
    constraints: [{type: check, name: a_word, expression: "\"word\" rlike '^[\\w\\\\]+$'"}]
    columns:
      - {name: id, data_type: int, constraints: [{type: not_null}]}
      - {name: word, data_type: string}
unit_tests:
  - name: only_digits
    model: digits
    overrides: {macros: {is_incremental: false}}
    given: [{input: ref('words'), rows: [{id: 1, word: 'x\y'}, {id: 2, word: 'x\2'}]}]
    expect: {rows: [{id: 2, word: 'x\2'}]}
  - name: what_is_given_is_what_is_read
    model: lists
    given: [{input: ref('nested'), rows: [{list: ['a\b', 'c']}]}]
    expect: {rows: [{length: 3, first: 'a\b'}]}
""",
}
SNAPSHOT = """
{% snapshot kept %}{{ config(unique_key='id', strategy='check', check_cols=['word'], target_schema=schema) }}
select "id", "word" from {{ ref('words') }}{% endsnapshot %}
"""


class TestSessionQuotes:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return MODELS

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"raw.csv": 'id,text\n1,a\\b\n2,it\'s\n3,"a ""q"""\n'}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"kept.sql": SNAPSHOT}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"models": {"+persist_docs": {"relation": True, "columns": True}}}

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        settings = {
            "spark.sql.parser.escapedStringLiterals": "true",
            "spark.sql.ansi.doubleQuotedIdentifiers": "true",
        }
        return {**dbt_profile_target, "spark_conf": {**dbt_profile_target.get("spark_conf", {}), **settings}}

    def test_each_kind_of_node_is_built_twice_with_the_sessions_quoting(self, project: Any) -> None:
        for _ in range(2):
            results = run_dbt(["build"])
            assert {str(each.status) for each in results} <= {"success", "pass"}
        rows = [(1, "a1"), (2, "b\\2")]
        assert project.run_sql(f'select * from {project.test_schema}."digits" order by 1', fetch="all") == rows
        shown = project.run_sql(f'select "the id", "word" from {project.test_schema}.shown order by 1', fetch="all")
        assert shown == [(1, "a1"), (2, "b-2")]
        raw = project.run_sql(f"select text from {project.test_schema}.raw order by id", fetch="all")
        assert raw == [("a\\b",), ("it's",), ('a "q"',)]
        escaped = project.run_sql(f"select text from {project.test_schema}.escaped", fetch="one")
        assert escaped == ("a\\b",)
