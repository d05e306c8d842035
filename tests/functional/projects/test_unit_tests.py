"""Unit tests of models with every type of column, in each of dbt's formats, and of incremental models."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

ALL_TYPES = """
{{ config(materialized='table') }}
select cast(1 as int) as id, 'x' as name, cast(1.5 as decimal(10, 2)) as amount, 1.5D as ratio, true as flag,
  date'2026-03-01' as day, timestamp'2026-03-01 10:00:00' as at, timestamp_ntz'2026-03-01 10:00:00' as wall,
  X'C3' as bytes, array('a') as tags, named_struct('a', 1, 'b', 'x') as pair, map('k', 1) as counts,
  parse_json('1') as anything,
  'g' as `group`, 1 as `order by`
"""

READER = "select *, size(tags) as n_tags, pair.b as b, cast(anything as string) as text from {{ ref('all_types') }}"

INCREMENTAL = """
{{ config(materialized='incremental', unique_key='id') }}
select id, name, amount from {{ ref('all_types') }}
{% if is_incremental() %} where id > (select max(id) from {{ this }}) {% endif %}
"""

UNIT_TESTS = r'''
unit_tests:
  - name: rows_of_every_type
    model: reader
    given:
      - input: ref('all_types')
        rows:
          - {id: 1, name: "it's a \\ back\nline", amount: 12.345, ratio: 1.0e-3, flag: false, day: 2026-03-02,
             at: 2026-03-02 10:00:00, wall: "2026-03-02 10:00:00", bytes: "xyz", tags: [a, b], pair: {a: 1, b: "y"},
             counts: {k: 2}, anything: {z: [1]}, group: gg, "order by": 3}
          - {id: 2, tags: "array('q')", pair: "named_struct('a', 5, 'b', 'z')", counts: "map('k', 1)"}
          - {id: 3, tags: '["q"]'}
    expect:
      rows:
          - {id: 1, name: "it's a \\ back\nline", amount: 12.35, ratio: 0.001, flag: false, day: 2026-03-02,
             at: 2026-03-02 10:00:00, wall: "2026-03-02 10:00:00", bytes: "xyz", tags: [a, b], pair: {a: 1, b: "y"},
             counts: {k: 2}, group: gg, "order by": 3, n_tags: 2, b: y, text: '{"z":[1]}'}
          - {id: 2, name: null, amount: null, ratio: null, flag: null, day: null,
             at: null, wall: null, bytes: null, tags: [q], pair: {a: 5, b: z},
             counts: {k: 1}, group: null, "order by": null, n_tags: 1, b: z, text: null}
          - {id: 3, name: null, amount: null, ratio: null, flag: null, day: null,
             at: null, wall: null, bytes: null, tags: [q], pair: null,
             counts: null, group: null, "order by": null, n_tags: 1, b: null, text: null}
  - name: rows_as_csv
    model: reader
    given:
      - {input: ref('all_types'), format: csv, fixture: some_rows}
    expect:
      format: csv
      rows: |
        id,name,amount,day,n_tags,at
        1,"it's, ""q""",2.50,2026-03-02,2,2026-03-02 10:00:00
        2,,,,,
  - name: rows_as_sql
    model: incremental
    overrides: {macros: {is_incremental: false}}
    given:
      - {input: ref('all_types'), format: sql, rows: "select 7 as id, 'from \\sql' as name, 1.5 as amount"}
    expect:
      format: sql
      rows: "select 7 as id, 'from \\sql' as name, 1.5 as amount"
  - name: adds_what_is_newer
    model: incremental
    overrides: {macros: {is_incremental: true}}
    given:
      - {input: ref('all_types'), rows: [{id: 1}, {id: 2}, {id: 3, name: c}]}
      - {input: this, rows: [{id: 1}, {id: 2}]}
    expect:
      rows: [{id: 3, name: c}]
  - name: without_rows
    model: incremental
    overrides: {macros: {is_incremental: false}}
    given:
      - {input: ref('all_types'), rows: []}
    expect: {rows: []}
  - name: another_result
    model: reader
    config: {tags: wrong}
    given:
      - input: ref('all_types')
        rows: [{id: 1, name: a, tags: [x]}, {id: 2, name: null, tags: [y]}]
    expect:
      rows: [{id: 1, name: b, tags: [x]}, {id: 2, name: null, tags: [y]}]
'''

SOME_ROWS = '''id,name,amount,day,tags,at
1,"it's, ""q""",2.50,2026-03-02,"[""a"",""b""]",2026-03-02 10:00:00
2,,,,,
'''


class TestUnitTests:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "all_types.sql": ALL_TYPES,
            "reader.sql": READER,
            "incremental.sql": INCREMENTAL,
            "unit_tests.yml": UNIT_TESTS,
        }

    @pytest.fixture(scope="class")
    def tests(self) -> dict[str, Any]:
        return {"fixtures": {"some_rows.csv": SOME_ROWS}}

    def test_rows_of_all_types_are_given_and_expected_in_each_format(self, project: Any) -> None:
        run_dbt(["run"])
        results = run_dbt(["test", "--select", "test_type:unit", "--exclude", "tag:wrong"])
        assert {(result.node.name, result.status) for result in results} == {
            (name, "pass")
            for name in ("rows_of_every_type", "rows_as_csv", "rows_as_sql", "adds_what_is_newer", "without_rows")
        }

    def test_a_result_that_differs_is_shown_cell_by_cell(self, project: Any) -> None:
        results, output = run_dbt_and_capture(["--no-use-colors", "test", "--select", "tag:wrong"], expect_pass=False)
        assert [result.status for result in results] == ["fail"]
        assert "actual differs from expected" in output
        assert "b→a" in output
