"""Files that begin with a byte order mark, as editors on Windows write them, and a mistake in such a file."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

MARK = "\ufeff"
SNAPSHOT = """
{% snapshot kept %}
{{ config(strategy='check', check_cols='all', unique_key='id', schema=target.schema) }}
select * from {{ ref('of_macro') }}
{% endsnapshot %}
"""
MACROS = """
{% macro one() %}1{% endmacro %}
{% macro delete_all(relation) %}{% do run_query('\ufeffdelete from ' ~ relation) %}{% endmacro %}
"""
PROPERTIES = """
models:
  - name: plain
    columns:
      - name: id
        data_tests: [not_null, unique]
unit_tests:
  - name: with_rows
    model: seen
    given:
      - input: ref('plain')
        rows: [{id: 1}]
    expect:
      rows: [{id: 1}]
"""


class TestByteOrderMarks:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        texts = {
            "plain.sql": "select 1 as id",
            "commented.sql": "-- a comment\n{{ config(materialized='table') }}\nselect 2 as id",
            "seen.sql": "{{ config(materialized='view') }}select * from {{ ref('plain') }}",
            "inlined.sql": "{{ config(materialized='ephemeral') }}select id from {{ ref('plain') }}",
            "of_macro.sql": "select {{ one() }} as id from {{ ref('inlined') }} join {{ ref('plain') }} using (id)",
            "merged.sql": "{{ config(materialized='incremental', unique_key='id') }}select * from {{ ref('seen') }}",
            "hooked.sql": "{{ config(materialized='table', post_hook='\ufeffdelete from {{ this }}') }}select 1 as id",
            "properties.yml": PROPERTIES,
        }
        mistaken = {"mistaken.sql": "select x from (select /x from t)"}
        return mistaken | {name: MARK + text for name, text in texts.items()}

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"macros.sql": MARK + MACROS}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"kept.sql": MARK + SNAPSHOT}

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"seeded.csv": MARK + "id,name\n1,x\n"}

    @pytest.fixture(scope="class")
    def tests(self) -> dict[str, str]:
        return {"singular.sql": MARK + "select id from {{ ref('seeded') }} where id > 1"}

    def test_byte_order_marks_are_ignored_in_every_kind_of_file(self, project: Any) -> None:
        for _ in range(2):
            results = run_dbt(["build", "--exclude", "mistaken"])
            assert {result.status for result in results} <= {"success", "pass"}
        run_dbt(["run-operation", "delete_all", "--args", f"relation: {project.test_schema}.seeded"])
        assert project.run_sql(f"select count(*) from {project.test_schema}.seeded", fetch="one") == (0,)

    def test_a_mistake_in_a_model_is_reported_with_its_position(self, project: Any) -> None:
        _, output = run_dbt_and_capture(["run", "--select", "mistaken"], expect_pass=False)
        assert "[SILT_SYNTAX]" in output and "at or near '/' (line 1, column 23" in output
        assert "does not exist" not in output
