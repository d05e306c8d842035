"""Timestamps of a session with a zone other than UTC, as dbt shows them."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest
from dbt.tests.util import get_artifact, run_dbt, run_dbt_and_capture

SOURCES = """
sources:
  - name: raw
    schema: "{{ target.schema }}"
    config: {freshness: {error_after: {count: 36500, period: day}}}
    tables:
      - {name: times, config: {loaded_at_field: at}}
      - {name: walls, identifier: times, config: {loaded_at_field: wall}}
      - {name: queried, identifier: times, config: {loaded_at_query: "select max(at) from {{ this }}"}}
"""

TIMES = """
{{ config(materialized='table') }}
select timestamp'2026-07-01 10:00:00' as at, timestamp_ntz'2026-07-01 10:00:00' as wall,
  array(timestamp'2026-07-01 10:00:00') as many
"""


class TestSessionZone:
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        conf = {**dbt_profile_target["spark_conf"], "spark.sql.session.timeZone": "Europe/Paris"}
        return {**dbt_profile_target, "spark_conf": conf}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"times.sql": TIMES, "sources.yml": SOURCES}

    def test_rows_show_times_in_the_sessions_zone_as_spark_does(self, project: Any) -> None:
        run_dbt(["run"])
        noon = datetime.datetime(2026, 7, 1, 10)
        assert project.run_sql("select at, wall from {schema}.times", fetch="one") == (noon, noon)
        _, output = run_dbt_and_capture(["--quiet", "show", "--select", "times", "--output", "json"])
        [shown] = json.loads(output)["show"]
        assert shown == {
            "at": "2026-07-01T10:00:00",
            "wall": "2026-07-01T10:00:00",
            "many": '["2026-07-01T10:00:00"]',
        }

    def test_freshness_converts_instants_to_utc_and_keeps_times_without_a_zone(self, project: Any) -> None:
        run_dbt(["source", "freshness"])
        results = get_artifact("target", "sources.json")["results"]
        assert {each["unique_id"].split(".")[-1]: each["max_loaded_at"][:19] for each in results} == {
            "times": "2026-07-01T08:00:00",
            "walls": "2026-07-01T10:00:00",
            "queried": "2026-07-01T08:00:00",
        }
        now = datetime.datetime.now(datetime.timezone.utc)
        for each in results:
            asked = datetime.datetime.fromisoformat(each["snapshotted_at"].replace("Z", "+00:00"))
            assert abs(asked - now) < datetime.timedelta(minutes=10)
