"""A backfill that an orchestrator runs twice is applied once, and a new backfill is not mistaken for an earlier one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dbt.tests.util import run_dbt

EVENTS = """
{{ config(materialized='table', event_time='at') }}
select cast(id as int) as id, timestamp'2026-03-01 12:00:00' + make_dt_interval(cast(id as int)) as at from range(8)
"""
BY_DAY = """
{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='at', batch_size='day',
          begin='2026-03-01', lookback=0) }}
select id, at, '{{ var("note") }}' as note from {{ ref('events') }}
"""
OF_DAYS = """
{{ config(materialized='incremental', incremental_strategy=STRATEGY, unique_key='id') }}
select id, at, '{{ var("note") }}' as note from {{ ref('events') }}
where at >= timestamp '{{ var("first") }}' and at < timestamp '{{ var("end") }}'
"""
TABLES = ("by_day", "appended", "replaced")


class TestBackfills:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "events.sql": EVENTS,
            "by_day.sql": BY_DAY,
            "appended.sql": OF_DAYS.replace("STRATEGY", "'append'"),
            "replaced.sql": OF_DAYS.replace("STRATEGY", "'delete+insert'"),
        }

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        return {**dbt_profile_target, "run_id": "{{ env_var('ORCHESTRATOR_RUN_ID') }}"}

    @pytest.fixture(scope="class", autouse=True)
    def orchestrator(self) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("ORCHESTRATOR_RUN_ID", "setup")
            yield patch

    def test_a_backfill_that_is_run_twice_is_applied_once(self, project: Any, orchestrator: Any) -> None:
        """The second run would write other rows; their absence shows that the work was recognised."""
        run_dbt(["run", "--select", "events", "--vars", _vars(5, 7, "none")])
        _backfill(orchestrator, "scheduled__2026-03-06", 5, 7, "first")
        expected = {table: [(4, "first"), (5, "first")] for table in TABLES}
        assert _rows(project) == expected
        results = _backfill(orchestrator, "scheduled__2026-03-06", 5, 7, "again")
        assert _rows(project) == expected
        responses = {result.node.name: result.adapter_response for result in results}
        assert responses["appended"]["skipped"] and responses["replaced"]["skipped"]

    def test_an_older_backfill_after_a_newer_one_is_applied(self, project: Any, orchestrator: Any) -> None:
        """Its run id, its days and its batches all sort before those in the tables."""
        _backfill(orchestrator, "scheduled__2026-03-02", 2, 4, "older")
        expected = {table: [(1, "older"), (2, "older"), (4, "first"), (5, "first")] for table in TABLES}
        assert _rows(project) == expected

    def test_the_same_backfill_under_a_new_run_id_is_new_work(self, project: Any, orchestrator: Any) -> None:
        _backfill(orchestrator, "manual__2026-03-09", 2, 4, "anew")
        earlier_rows = [(4, "first"), (5, "first")]
        assert _rows(project) == {
            "by_day": [(1, "anew"), (2, "anew"), *earlier_rows],
            "appended": sorted([(1, "older"), (2, "older"), (1, "anew"), (2, "anew"), *earlier_rows]),
            "replaced": [(1, "anew"), (2, "anew"), *earlier_rows],
        }


def _backfill(orchestrator: Any, run_id: str, first: int, end: int, note: str) -> Any:
    """Backfills from one day of March up to, not including, another day."""
    orchestrator.setenv("ORCHESTRATOR_RUN_ID", run_id)
    window = ("--event-time-start", f"2026-03-0{first}", "--event-time-end", f"2026-03-0{end}")
    return run_dbt(["run", "--exclude", "events", *window, "--vars", _vars(first, end, note)])


def _vars(first: int, end: int, note: str) -> str:
    return json.dumps({"first": f"2026-03-0{first}", "end": f"2026-03-0{end}", "note": note})


def _rows(project: Any) -> dict[str, list[tuple[Any, ...]]]:
    return {
        table: sorted(
            tuple(row) for row in project.run_sql(f"select id, note from {project.test_schema}.{table}", fetch="all")
        )
        for table in TABLES
    }
