"""`--empty` and `--sample` with each materialization; dbt always passes all rows to a Python model."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

EVENTS = """
{{ config(materialized='table', event_time='at') }}
select explode(sequence(timestamp'2025-01-01 12:00:00', timestamp'2025-01-03 12:00:00', interval 1 day)) as at
"""

SNAPSHOTS = """
snapshots:
  - name: as_snapshot
    relation: ref('events')
    config: {unique_key: at, strategy: check, check_cols: all}
"""

BUILT = ("as_table", "as_view", "as_append", "as_merge", "on_ephemeral", "as_snapshot")


class TestEmptyAndSample:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        query = "select * from {{ ref('events') }}"
        return {
            "events.sql": EVENTS,
            "as_table.sql": "{{ config(materialized='table') }}" + query,
            "as_view.sql": "{{ config(materialized='view') }}" + query,
            "as_append.sql": "{{ config(materialized='incremental', incremental_strategy='append') }}" + query,
            "as_merge.sql": "{{ config(materialized='incremental', unique_key='at') }}" + query,
            "ephemeral.sql": "{{ config(materialized='ephemeral') }}" + query,
            "on_ephemeral.sql": "{{ config(materialized='table') }} select * from {{ ref('ephemeral') }}",
        }

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"snapshots.yml": SNAPSHOTS}

    def counts(self, project: Any) -> dict[str, int]:
        schema = f"{project.database}.{project.test_schema}"
        query = " union all ".join(f"select '{name}', count(*) from {schema}.{name}" for name in BUILT)
        return dict(project.run_sql(query, fetch="all"))

    def test_empty_builds_every_node_without_rows_and_a_later_build_of_the_run_fills_them(self, project: Any) -> None:
        run_dbt(["build", "--empty", "--vars", "silt_run_id: R1"])
        assert self.counts(project) == dict.fromkeys(BUILT, 0)
        run_dbt(["build", "--vars", "silt_run_id: R1"])
        assert self.counts(project) == dict.fromkeys(BUILT, 3)

    def test_a_command_that_removes_rows_from_tables_reports_it_once_with_the_remedy(self, project: Any) -> None:
        _, said = run_dbt_and_capture(["build", "--empty", "--vars", "silt_run_id: R2"])
        said = " ".join(said.split())
        assert said.count("`--empty` builds tables without rows, but ") == 1
        assert "has 3 rows: this command replaces the rows of existing tables" in said
        assert "silt rollback R2" in said
        assert self.counts(project) == {"as_table": 0, "as_view": 0, "on_ephemeral": 0} | dict.fromkeys(
            ("as_append", "as_merge", "as_snapshot"), 3
        )
        _, said = run_dbt_and_capture(["build", "--empty", "--exclude", "events"])
        assert "builds tables without rows" not in said
        run_dbt(["build"])

    def test_a_sample_builds_from_its_window_only(self, project: Any) -> None:
        window = "{start: '2025-01-02', end: '2025-01-03'}"
        run_dbt(["build", "--full-refresh", "--sample", window, "--exclude", "as_snapshot"])
        assert self.counts(project) == {**dict.fromkeys(BUILT, 1), "as_snapshot": 3}


SOURCES = """
sources: [{name: raw, schema: "{{ target.schema }}", config: {event_time: at}, tables: [{name: people}]}]
models:
  - name: quoted
    config: {event_time: 'the time'}
    columns: [{name: 'the time', quote: true}]
unit_tests:
  - name: of_names
    model: by_names
    given:
      - {input: ref('log'), rows: []}
      - {input: ref('events'), rows: [{at: '2025-01-02 12:00:00'}]}
      - {input: ref('quoted'), rows: [{the time: '2025-01-02 12:00:00'}]}
      - {input: "source('raw', 'people')", rows: [{id: 7, at: '2025-01-02 12:00:00'}]}
    expect: {rows: [{id: 7, at: '2025-01-02 12:00:00'}]}
"""
BY_NAMES = """
{{ config(
    materialized='table',
    pre_hook="merge into {{ target.schema }}.hooked t using {{ ref('events') }}
        on events.at = t.at when not matched then insert *",
    post_hook="insert into {{ ref('log') }} select count(*) from {{ ref('events') }} version as of 0"
) }}
-- depends_on: {{ ref('log') }}
with first as (select events.* from {{ ref('events') }} version as of 0 where events.at is not null)
select people.id, first.at
from {{ source('raw', 'people') }}
join first on first.at = people.at
left join {{ ref('events') }}@v0 as e on e.at = first.at
join {{ ref('quoted') }} on quoted.`the time` = first.at
"""
FULL_NAMES = """
{{ config(materialized='view') }}
select {{ target.schema }}.people.id, silt.{{ target.schema }}.events.at
from {{ source('raw', 'people') }}, {{ ref('events') }}
where people.at = events.at
"""
LOG = "{{ config(materialized='table') }} select cast(null as bigint) as n where false"
QUOTED = "{{ config(materialized='table') }} select at as `the time` from {{ ref('events') }}"


class TestNamesOfTables:
    """A model that qualifies columns by table names, and reads old versions of tables."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "sources.yml": SOURCES,
            "events.sql": EVENTS,
            "quoted.sql": QUOTED,
            "by_names.sql": BY_NAMES,
            "full_names.sql": FULL_NAMES,
            "log.sql": LOG,
        }

    def count(self, project: Any, *names: str) -> list[int]:
        return [project.run_sql(f"select count(*) from {{schema}}.{name}", fetch="one")[0] for name in names]

    def test_the_model_builds_completely_empty_from_a_sample_and_in_a_unit_test(self, project: Any) -> None:
        days = (
            "select explode(sequence(timestamp'2025-01-01 12:00:00', timestamp'2025-01-03 12:00:00', interval 1 day))"
        )
        project.run_sql(f"create table {{schema}}.people as select 7 as id, at from ({days} as at)")
        project.run_sql("create table {schema}.hooked (at timestamp)")
        run_dbt(["build"])
        names = ("by_names", "full_names", "hooked", "log")
        assert self.count(project, *names) == [3, 3, 3, 1]

        window = "{start: '2025-01-02', end: '2025-01-03'}"
        project.run_sql("truncate table {schema}.hooked")
        run_dbt(["run", "--select", "by_names", "full_names", "--sample", window])
        assert self.count(project, *names) == [1, 1, 1, 2]

        run_dbt(["run", "--select", "by_names", "full_names", "--empty"])
        assert self.count(project, *names) == [0, 0, 1, 3]
        assert sorted(project.run_sql("select n from {schema}.log", fetch="all")) == [(0,), (1,), (3,)]


GONE = """
snapshots:
  - name: invalidated
    relation: ref('events')
    config: {unique_key: at, strategy: check, check_cols: all, hard_deletes: invalidate}
  - name: by_time
    relation: ref('events')
    config: {unique_key: at, strategy: timestamp, updated_at: at, hard_deletes: invalidate}
  - name: recorded
    relation: ref('events')
    config: {unique_key: at, strategy: check, check_cols: all, hard_deletes: new_record}
"""


class TestSnapshotsOfPartOfTheRows:
    """A part of the rows does not show which rows are gone, so no row of a snapshot ends."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"events.sql": EVENTS}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"gone.yml": GONE}

    def states(self, project: Any) -> list[tuple[int, int]]:
        """Returns the numbers of rows, and of current rows, of each snapshot."""
        names = ("invalidated", "by_time", "recorded")
        query = "select count(*), count_if(dbt_valid_to is null) from {schema}."
        return [project.run_sql(f"{query}{name}", fetch="one") for name in names]

    @pytest.mark.parametrize("flags", [["--empty"], ["--sample", "{start: '2025-01-02', end: '2025-01-03'}"]])
    def test_no_row_ends_and_the_next_whole_build_ends_what_is_gone(self, project: Any, flags: list[str]) -> None:
        run_dbt(["build"])
        before = self.states(project)
        run_dbt(["build", "--select", "resource_type:snapshot", *flags])
        run_dbt(["build", *flags])
        assert self.states(project) == before == [(3, 3)] * 3
        run_dbt(["build"])
        assert self.states(project) == before

    def test_a_row_that_is_gone_ends_without_the_flags(self, project: Any) -> None:
        run_dbt(["build"])
        project.run_sql("delete from {schema}.events where at < timestamp'2025-01-02'")
        run_dbt(["snapshot"])
        assert self.states(project) == [(3, 2), (3, 2), (4, 3)]
