"""Models with a collated column: keys, snapshots, seeds and tests compare by the collation, and no run loses it."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt

COLLATED = "string collate UTF8_LCASE"
PEOPLE = f"""
{{{{ config(materialized='table') }}}}
select id, cast(name as {COLLATED}) as name from values {{{{ var('people') }}}} as t (id, name)
"""
INCREMENTAL = "{{ config(materialized='incremental', %s) }} select id, name from {{ ref('people') }}"
SNAPSHOT = """
snapshots:
  - {name: history_by_id, relation: ref('people'), config: {unique_key: id, strategy: check, check_cols: all}}
  - {name: history_by_name, relation: ref('people'), config: {unique_key: name, strategy: check, check_cols: [id]}}
"""
SCHEMA = f"""
version: 2
models:
  - name: by_id
    config: {{contract: {{enforced: true}}}}
    columns:
      - {{name: id, data_type: int}}
      - {{name: name, data_type: {COLLATED}, data_tests: [unique]}}
"""
FIRST = "(1, ''Ann''), (2, ''bob'')"
SECOND = "(1, ''ANN''), (2, ''Bobby''), (3, ''cid'')"


def build(people: str, *arguments: str, expect_pass: bool = True) -> dict[str, Any]:
    results = run_dbt(["build", "--vars", f"people: '{people}'", *arguments], expect_pass=expect_pass)
    return {each.node.name: each for each in results}


def rows(project: Any, query: str) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, project.run_sql(query, fetch="all")))


class TestCollatedColumns:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "people.sql": PEOPLE,
            "by_id.sql": INCREMENTAL % "unique_key='id', on_schema_change='append_new_columns'",
            "by_name.sql": INCREMENTAL % "unique_key='name'",
            "deleted.sql": INCREMENTAL % "unique_key='name', incremental_strategy='delete+insert'",
            "differences.sql": "{{ config(materialized='table', write='differences', unique_key='name') }}"
            " select id, name from {{ ref('people') }}",
            "keyed.sql": "{{ config(materialized='incremental', incremental_strategy='changed_keys', unique_key='name',"
            " on_unsupported_query='full_refresh') }} select name, count(*) as n from {{ ref('people') }} group by 1",
            "seen.sql": "{{ config(materialized='view') }} select * from {{ ref('by_id') }} where name = 'ANN'",
            "schema.yml": SCHEMA,
        }

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {
            "names.csv": "name,n\nAnn,1\nbob,2\n",
            "names.yml": f"seeds: [{{name: names, config: {{column_types: {{name: {COLLATED}}}}}}}]",
        }

    def test_every_run_compares_by_the_collation_and_keeps_it(self, project: Any) -> None:
        build(FIRST)
        results = build(SECOND)
        assert rows(project, "select * from {schema}.by_id") == [(1, "ANN"), (2, "Bobby"), (3, "cid")]
        merged = [(1, "ANN"), (2, "Bobby"), (2, "bob"), (3, "cid")]
        for table in ("by_name", "deleted"):
            assert rows(project, f"select * from {{schema}}.{table}") == merged
        assert rows(project, "select * from {schema}.differences") == [(1, "ANN"), (2, "Bobby"), (3, "cid")]
        assert rows(project, "select * from {schema}.keyed") == [("ANN", 1), ("Bobby", 1), ("cid", 1)]
        assert "the key `name` of type string collate UTF8_LCASE" in str(results["keyed"].adapter_response)
        assert rows(project, "select n from {schema}.names where name = 'BOB'") == [(2,)]
        assert rows(project, "select id from {schema}.seen") == [(1,)]
        for table in ("by_id", "by_name", "deleted", "differences", "keyed", "names", "seen"):
            described = rows(project, f"describe table {{schema}}.{table}")
            assert ("name", COLLATED) in [row[:2] for row in described]

    def test_the_test_of_uniqueness_compares_by_the_collation(self, project: Any) -> None:
        results = build("(1, ''x''), (2, ''X'')", "--select", "people", "by_id", "--full-refresh", expect_pass=False)
        assert results["unique_by_id_name"].failures == 1

    def test_a_published_run_compares_by_the_collation(self, project: Any) -> None:
        build(FIRST, "--full-refresh", "--select", "people", "by_name")
        run_dbt(
            ["build", "--vars", f"{{people: '{SECOND}', silt_publish: after_tests}}", "--select", "people", "by_name"]
        )
        assert rows(project, "select id, name from {schema}.by_name where name = 'ann'") == [(1, "ANN")]


class TestSnapshotsOfCollatedColumns:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"people.sql": PEOPLE}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"history.yml": SNAPSHOT}

    def test_a_snapshot_records_no_change_that_the_collation_ignores(self, project: Any) -> None:
        build(FIRST)
        build(SECOND)
        current = "select id, name from {schema}.%s where dbt_valid_to is null"
        assert rows(project, current % "history_by_id") == [(1, "Ann"), (2, "Bobby"), (3, "cid")]
        assert rows(project, "select count(*) from {schema}.history_by_id") == [(4,)]
        assert rows(project, current % "history_by_name") == [(1, "Ann"), (2, "Bobby"), (2, "bob"), (3, "cid")]
