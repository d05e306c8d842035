"""Every config that names columns takes `"Key"` as a column, as dbt quotes it, although Spark reads it as a string."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

KEY = """unique_key='"Key"'"""
CONFIGS = {
    "merged": f"materialized='incremental', incremental_strategy='merge', {KEY}, merge_update_columns=['\"V\"']",
    "deleted": f"materialized='incremental', incremental_strategy='delete+insert', {KEY}",
    "keyed": f"materialized='incremental', incremental_strategy='changed_keys', {KEY}",
    "grouped": """materialized='incremental', incremental_strategy='changed_keys', group_key=['"Key"']""",
    "replaced": f"materialized='table', write='differences', {KEY}",
    "cut": "materialized='table', partition_by='\"Day\"'",
    "several_cuts": """materialized='table', partition_by='"Day", "Key"'""",
    "overwritten": """materialized='incremental', incremental_strategy='insert_overwrite', partition_by=['"Day"']""",
    "by_field": """materialized='table', partition_by={'field': '"Day"', 'data_type': 'date'}""",
    "ordered": """materialized='table', post_hook="{{ silt_optimize(this, zorder_by=['\\"Key\\"']) }}\"""",
}
QUERY = "select `Key`, `Day`, `V` from {{ ref('raw_rows') }}"
ROWS = """
{{ config(materialized='table') }}
select * from values
  (1, date'2026-01-01', timestamp'2026-01-01', 'a'), (2, date'2026-01-02', timestamp'2026-01-02', 'b')
as t(`Key`, `Day`, `At`, `V`)
"""
BATCHES = """
{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='"At"', begin='2026-01-01',
          batch_size='day', lookback=1) }}
select * from {{ ref('raw_rows') }}
"""
CONSUMED = """
{{ config(materialized='incremental', incremental_strategy='merge', unique_key='"Key"') }}
select `Key`, `V`, _change_type from {{ silt_changes(ref('raw_rows'), as='upserts', key='"Key"') }}
"""
PROPERTIES = """
models:
  - {name: raw_rows, config: {event_time: '"At"'}}
  - name: under_contract
    config: {materialized: table, contract: {enforced: true}}
    constraints: [{type: not_null, columns: ['"Key"']}, {type: primary_key, columns: ['"Key"']}]
    columns: [{name: Key, data_type: int}, {name: Day, data_type: date}, {name: V, data_type: string}]
snapshots:
  - name: snapped
    relation: ref('raw_rows')
    config: {unique_key: '"Key"', strategy: timestamp, updated_at: '"At"'}
sources:
  - name: own
    schema: "{{ target.schema }}"
    tables:
      - {name: raw_rows, loaded_at_field: '"At"', config: {freshness: {warn_after: {count: 1, period: day}}}}
"""


class TestColumnsInDoubleQuotes:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            **{f"{name}.sql": "{{ config(" + config + ") }} " + QUERY for name, config in CONFIGS.items()},
            "raw_rows.sql": ROWS,
            "batches.sql": BATCHES,
            "consumed.sql": CONSUMED,
            "under_contract.sql": QUERY,
            "properties.yml": PROPERTIES,
        }

    def test_every_node_is_built_twice_with_each_row_once(self, project: Any) -> None:
        end = ["--event-time-start", "2026-01-01", "--event-time-end", "2026-01-03"]
        run_dbt(["build", *end])
        results = run_dbt(["build", "--exclude", "raw_rows", *end])
        for each in results:
            assert project.run_sql(f"select count(*) from {{schema}}.{each.node.alias}", fetch="one") == (2,), each
        for name in ("cut", "overwritten", "by_field"):
            found = project.run_sql(f"describe detail {{schema}}.{name}", fetch="all")
            assert any("Day" in str(value) for value in found[0]), found

    def test_freshness_reads_the_column(self, project: Any) -> None:
        run_dbt(["run", "--select", "raw_rows"])
        run_dbt(["source", "freshness"])
        found = json.loads((Path(project.project_root) / "target" / "sources.json").read_text())
        assert found["results"][0]["max_loaded_at"].startswith("2026-01-02")


SOURCE = """
sources:
  - name: s
    schema: "{{ target.schema }}"
    config: {freshness: {warn_after: {count: 1, period: day}}}
    tables:
      - {name: two_columns, identifier: events, config: {loaded_at_query: "select max(at), count(*) as n from EVENTS"}}
      - {name: two_rows, identifier: events, config: {loaded_at_query: "select at from EVENTS"}}
      - {name: right, identifier: events, config: {loaded_at_query: "select max(at) from EVENTS -- the newest"}}
""".replace("EVENTS", "{{ target.schema }}.events")


class TestLoadedAtQuery:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        values = "values (timestamp'2026-01-01'), (timestamp'2026-01-02') as t(at)"
        return {"events.sql": "{{ config(materialized='table') }} select * from " + values, "sources.yml": SOURCE}

    def test_a_query_that_does_not_return_one_value_is_refused_with_its_config_and_its_source(
        self, project: Any
    ) -> None:
        run_dbt(["run"])
        results, _ = run_dbt_and_capture(["source", "freshness"], expect_pass=False)
        said = {each.node.name: str(each.message) for each in results if each.status == "runtime error"}
        assert set(said) == {"two_columns", "two_rows"}
        for name, message in said.items():
            assert "`loaded_at_query` of the source" in message, message
            assert "has the columns max(at), n: it must" in message or name == "two_rows"
            assert "are several rows: return one row, as with `max`" in message or name == "two_columns"
