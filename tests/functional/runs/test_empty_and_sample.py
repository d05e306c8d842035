"""`--empty` and `--sample` with each materialization; to a python model dbt gives all rows either way."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt

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

    def test_empty_builds_all_without_rows_and_a_build_of_the_same_run_fills_them(self, project: Any) -> None:
        run_dbt(["build", "--empty", "--vars", "silt_run_id: R1"])
        assert self.counts(project) == dict.fromkeys(BUILT, 0)
        run_dbt(["build", "--vars", "silt_run_id: R1"])
        assert self.counts(project) == dict.fromkeys(BUILT, 3)

    def test_a_sample_builds_from_its_window_alone(self, project: Any) -> None:
        window = "{start: '2025-01-02', end: '2025-01-03'}"
        run_dbt(["build", "--full-refresh", "--sample", window, "--exclude", "as_snapshot"])
        assert self.counts(project) == {**dict.fromkeys(BUILT, 1), "as_snapshot": 3}
