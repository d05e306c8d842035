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
          - {id: 1, name: "it's a \\ back\nline", amount: 12.34, ratio: 1.0e-3, flag: false, day: 2026-03-02,
             at: 2026-03-02 10:00:00, wall: "2026-03-02 10:00:00", bytes: "xyz", tags: [a, b], pair: {a: 1, b: "y"},
             counts: {k: 2}, anything: {z: [1]}, group: gg, "order by": 3}
          - {id: 2, tags: "array('q')", pair: "named_struct('a', 5, 'b', 'z')", counts: "map('k', 1)"}
          - {id: 3, tags: '["q"]'}
    expect:
      rows:
          - {id: 1, name: "it's a \\ back\nline", amount: 12.34, ratio: 0.001, flag: false, day: 2026-03-02,
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
  - name: columns_in_any_order
    model: incremental
    overrides: {macros: {is_incremental: false}}
    given:
      - {input: ref('all_types'), rows: [{id: 1, amount: 2}, {id: 2, amount: 1}]}
    expect:
      rows: [{id: 1, amount: 2}, {AMOUNT: 1, id: 2}]
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
  - name: other_columns
    model: reader
    config: {tags: uneven}
    given:
      - {input: ref('all_types'), rows: [{id: 1}, {id: 2}]}
    expect:
      rows: [{id: 1, name: null}, {id: 2, day: null}]
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

    def test_rows_of_all_types_can_be_given_and_expected_in_each_format(self, project: Any) -> None:
        run_dbt(["run"])
        results = run_dbt(["test", "--select", "test_type:unit", "--exclude", "tag:wrong", "tag:uneven"])
        assert {(result.node.name, result.status) for result in results} == {
            (name, "pass")
            for name in (
                "rows_of_every_type",
                "rows_as_csv",
                "rows_as_sql",
                "adds_what_is_newer",
                "columns_in_any_order",
                "without_rows",
            )
        }

    def test_a_different_result_is_shown_cell_by_cell(self, project: Any) -> None:
        results, output = run_dbt_and_capture(["--no-use-colors", "test", "--select", "tag:wrong"], expect_pass=False)
        assert [result.status for result in results] == ["fail"]
        assert "actual differs from expected" in output
        assert "b→a" in output

    def test_expected_rows_with_different_columns_are_refused(self, project: Any) -> None:
        (result,) = run_dbt(["test", "--select", "tag:uneven"], expect_pass=False)
        assert result.status == "error"
        assert "the expected output has the columns `day`, `name` in only one of its rows 1 and 2" in result.message


MAPS = """
select id, map('b', 1, 'a', 2) as flat, array(map('b', map(2, 'y', 1, 'x'), 'a', null)) as listed,
  named_struct('m', map(date'2026-03-02', array(1), date'2026-03-01', array(2))) as pair,
  cast(null as map<int, int>) as none
from {{ ref('typed') }}
"""

TYPED = """
{{ config(materialized='table') }}
select cast(1 as int) as id, cast(1 as tinyint) as small, cast(1.5 as decimal(10, 3)) as amount,
  1.5F as near, 1.5D as ratio, true as flag, date'2026-03-01' as day, timestamp'2026-03-01 10:00:00' as at,
  timestamp_ntz'2026-03-01 10:00:00' as wall, X'C3' as bytes, array(1) as numbers,
  named_struct('a', 1, 'd', date'2026-03-01') as pair,
  map('k', cast(1 as decimal(10, 3))) as sums, map(1, 1) as by_number
"""

INTERVALS = """
{{ config(materialized='view') }}
select interval '1' day as days, interval '1' month as months, interval '1 00:00:00' day to second as span
"""

WRONG = {
    "small": ["999", "-129", "1.7", "x", "'1.0'", "1e3"],
    "id": ["2147483648", "1.7", "twelve", "'1_000'"],
    "amount": ["twelve", "0.3333", "12345678", "'1e9'"],
    "near": ["1e39", "nothing", "16777217"],
    "ratio": ["twelve", "'1e400'", "9007199254740993"],
    "flag": ["maybe", "2"],
    "day": ["'2024-99-99'", "'2024-01-01 10:00:00'", "'2024-01-01 nonsense'", "7", "true"],
    "at": ["'2024-01-01 25:00:00'", "'2024-01-01 10:00:00.1234567'", "soon", "true"],
    "wall": ["'2024-01-01 10:00:00+05:00'", "'2024-13-01'", "5"],
    "bytes": ["5", "true"],
    "numbers": ["[1, 1.7]", "['x']", "\"array('x')\"", "'[1, 3000000000]'", "7", "{a: 1}"],
    "pair": ["{a: x}", "{d: '2024-99-99'}", "{z: 1}", "[1]", "\"named_struct('a', 1.7, 'd', null)\""],
    "sums": ["{k: 0.3333}", "'{\"k\": 12345678}'"],
    "by_number": ["{x: 1}", "{1: 1.5}"],
}
WRONG_TEXTS = {"name": ["long"], "names": ["[long]"]}
WRONG_INTERVALS = {"days": ["soon", "1.7", "true"], "months": ["x", "1.5"], "span": ["'25 hours'", "5"]}


def _tests_of_wrong_values() -> dict[str, tuple[str, str, str]]:
    """Returns for each unit test its YAML, and the column and value that its error must name."""
    found = {}
    for column, values in WRONG.items():
        for at, value in enumerate(values):
            row = f"{{{column}: {value}}}"
            for side, given, expected in (("given", row, "{id: null}"), ("expected", "{id: 1}", row)):
                name = f"{side}_{column}_{at}"
                text = f"""
  - name: {name}
    model: everything
    given: [{{input: ref('typed'), rows: [{given}]}}]
    expect: {{rows: [{expected}]}}"""
                found[name] = (text, column, value)
    for model, given, wrong in (
        ("spans", "ref('intervals')", WRONG_INTERVALS),
        ("of_texts", "source('raw', 'texts')", WRONG_TEXTS),
    ):
        for column, value in ((column, value) for column, values in wrong.items() for value in values):
            name = f"given_{column}_{len(found)}"
            text = f"""
  - name: {name}
    model: {model}
    given: [{{input: "{given}", rows: [{{{column}: {value}}}]}}]
    expect: {{rows: [{{{column}: null}}]}}"""
            found[name] = (text, column, value)
    return found


WRONG_TESTS = _tests_of_wrong_values()

AS_QUERIES = """
  - name: given_as_csv
    model: everything
    given: [{input: ref('typed'), format: csv, rows: "id,day\\n1,2024-99-99"}]
    expect: {rows: [{id: 1}]}
  - name: expected_as_csv
    model: everything
    given: [{input: ref('typed'), rows: [{id: 1}]}]
    expect: {format: csv, rows: "id,day\\n1,2024-99-99"}
  - name: given_as_sql
    model: everything
    given: [{input: ref('typed'), format: sql, rows: "select 1 as id, '2024-99-99' as day"}]
    expect: {rows: [{id: 1}]}
  - name: expected_as_sql
    model: everything
    given: [{input: ref('typed'), rows: [{id: 1}]}]
    expect: {format: sql, rows: "select 1 as id, '2024-99-99' as day"}
  - name: fits_as_sql
    model: ids
    given:
      - input: ref('typed')
        format: sql
        rows: "select 1L as id, '2024-1-5' as day, array(2L) as numbers, null as flag"
    expect: {format: sql, rows: "select 1L as id"}
  - name: maps
    model: maps
    given: [{input: ref('typed'), rows: [{id: 1}]}]
    expect:
      rows:
        - {id: 1, flat: {a: 2, b: 1}, listed: [{a: null, b: {1: x, 2: y}}],
           pair: {m: {"2026-03-01": [2], "2026-03-02": [1]}}, none: null}
  - name: intervals
    model: spans
    given: [{input: ref('intervals'), rows: [{days: 3, months: "2", span: "1 02:03:04"}]}]
    expect: {rows: [{days: "3", months: 2, span: "INTERVAL '1 02:03:04' DAY TO SECOND"}]}
  - name: other_maps
    model: maps
    given: [{input: ref('typed'), rows: [{id: 1}]}]
    expect: {rows: [{id: 1, flat: {a: 1, b: 2}}]}
"""


class TestValuesThatDoNotFit:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        tests = "".join(text for text, _, _ in WRONG_TESTS.values())
        return {
            "typed.sql": TYPED,
            "everything.sql": "select * from {{ ref('typed') }}",
            "intervals.sql": INTERVALS,
            "spans.sql": "select * from {{ ref('intervals') }}",
            "of_texts.sql": "select * from {{ source('raw', 'texts') }}",
            "ids.sql": "select id from {{ ref('typed') }}",
            "maps.sql": MAPS,
            "unit_tests.yml": f"unit_tests:{tests}{AS_QUERIES}",
            "sources.yml": "sources: [{name: raw, schema: '{{ target.schema }}', tables: [{name: texts}]}]",
        }

    def test_a_value_that_its_type_cannot_hold_is_refused_by_name_in_every_format(self, project: Any) -> None:
        project.run_sql("create table {schema}.texts (name varchar(2), names array<varchar(2)>)")
        run_dbt(["run"])
        results = run_dbt(["test", "--select", "test_type:unit"], expect_pass=False)
        ended = {result.node.name: result for result in results}
        said = {name: str(result.message) for name, result in ended.items()}
        assert {name for name, result in ended.items() if result.status == "pass"} == {
            "fits_as_sql",
            "intervals",
            "maps",
        }
        assert ended["other_maps"].status == "fail"
        for name, (_, column, value) in WRONG_TESTS.items():
            assert "SILT_TYPE_MISMATCH" in said[name], (name, said[name])
            assert f"of the column `{column}" in said[name], (name, value, said[name])
        for name in ("given_as_csv", "expected_as_csv", "given_as_sql", "expected_as_sql"):
            assert "the value `2024-99-99` in row 1 of the column `day`, whose type date" in said[name]
