"""Microbatch: each batch is one commit that replaces its window, and batches run side by side."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

import pytest
from dbt.tests.util import patch_microbatch_end_time, run_dbt, run_dbt_and_capture, write_file

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName

NOW = "2026-03-08 13:57:00"
EVENTS = """
{{ config(materialized='table', event_time='at') }}
select id, timestamp_micros(1772323200000000 + id * 43200000000) as at from range(16)
union all select 100, timestamp'2026-03-04 23:59:59.999999Z'
"""
"""Two events of each day from 2026-03-01 on, at midnight and at noon in UTC, and the last moment of the fourth."""


def batched(columns: str, config: str = "", size: str = "day", begin: str = "2026-03-01", ref: str = "events") -> str:
    words = f"incremental_strategy='microbatch', event_time='at', batch_size='{size}', begin='{begin}'"
    head = "{{ config(materialized='incremental', " + words + (", " + config if config else "") + ") }}"
    return f"{head} select id, {columns} as at from {{{{ ref('{ref}') }}}}"


FAILING = (
    "{% if model.batch and model.batch.id == '20260304' and var('broken', false) %}"
    " where assert_true(id < 0) is null {% endif %}"
)


def lines(project: Any, model: str) -> list[dict[str, Any]]:
    """The commits of a model, from the run's journal."""
    text = (Path(project.project_root) / "target" / "silt_commits.jsonl").read_text()
    return [each for each in map(json.loads, text.splitlines()) if each["node_id"] == f"model.test.{model}"]


def version(project: Any, model: str) -> int:
    place = RelationName(project.database, project.test_schema, model)
    return project.adapter.connections.catalog.table(place).snapshot().version


def ids(project: Any, model: str) -> list[int]:
    found = project.run_sql(f"select id from {project.database}.{project.test_schema}.{model}", fetch="all")
    return sorted(row[0] for row in found)


def run(*arguments: str, now: str = NOW, expect_pass: bool = True) -> Any:
    with patch_microbatch_end_time(now):
        return run_dbt(["run", *arguments], expect_pass=expect_pass)


class InNewYork:
    """A session whose time zone is not that of the batches."""

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        conf = {**dbt_profile_target["spark_conf"], "spark.sql.session.timeZone": "America/New_York"}
        return {**dbt_profile_target, "spark_conf": conf}


class TestBatches(InNewYork):
    ALL: ClassVar = [*range(16), 100]

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "events.sql": EVENTS,
            "by_instant.sql": batched("at", "concurrent_batches=true, unique_key='id'"),
            "by_local_time.sql": batched(
                "to_timestamp_ntz(to_utc_timestamp(at, current_timezone()))", "concurrent_batches=true"
            ),
            "by_date.sql": batched("to_date(to_utc_timestamp(at, current_timezone()))", "partition_by='at'"),
            "in_turn.sql": batched("at", "concurrent_batches=false, full_refresh=false"),
            "by_hour.sql": batched("at", size="hour", begin="2026-03-08T11:00:00"),
            "by_month.sql": batched("at", size="month", begin="2026-02-01"),
            "by_year.sql": batched("at", size="year", begin="2025-01-01"),
        }

    def test_every_size_and_type_gives_each_row_once_and_each_batch_a_commit(self, project: Any) -> None:
        run("--vars", "silt_run_id: R1")
        days = ("by_instant", "by_local_time", "by_date", "in_turn")
        assert {name: ids(project, name) for name in days} == dict.fromkeys(days, self.ALL)
        assert {name: version(project, name) for name in days} == dict.fromkeys(days, 7)
        assert (ids(project, "by_hour"), version(project, "by_hour")) == ([15], 2)
        assert (ids(project, "by_month"), version(project, "by_month")) == (self.ALL, 1)
        assert (ids(project, "by_year"), version(project, "by_year")) == (self.ALL, 1)

    def test_batches_side_by_side_run_each_statement_once(self, project: Any) -> None:
        for name in ("by_instant", "by_local_time", "by_date"):
            commits = lines(project, name)
            assert len({each["app_id"] for each in commits}) == 8
            assert Counter(each["statement_attempts"] for each in commits) == {1: 8}, name

    def test_the_same_run_again_applies_no_batch_twice(self, project: Any) -> None:
        run("--vars", "silt_run_id: R1", "--select", "by_instant", "in_turn")
        assert (version(project, "by_instant"), version(project, "in_turn")) == (7, 7)

    def test_a_later_run_replaces_the_windows_it_looks_back_to(self, project: Any) -> None:
        project.run_sql(f"delete from {project.test_schema}.by_instant where id between 12 and 15")
        before = version(project, "by_instant")
        run("--select", "by_instant")
        assert version(project, "by_instant") == before + 2, "the day of the run, and one to look back"
        assert ids(project, "by_instant") == self.ALL
        window = ("--event-time-start", "2026-03-02", "--event-time-end", "2026-03-04")
        project.run_sql(f"delete from {project.test_schema}.by_instant where id in (2, 3, 6)")
        run_dbt(["run", "--select", "by_instant", *window])
        assert ids(project, "by_instant") == [each for each in self.ALL if each != 6]

    def test_a_full_refresh_makes_the_table_anew_by_its_first_batch(self, project: Any) -> None:
        project.run_sql(f"insert into {project.test_schema}.by_instant select 77, timestamp'2020-01-01 00:00:00'")
        run("--select", "by_instant", "--full-refresh")
        assert ids(project, "by_instant") == self.ALL
        run("--select", "in_turn", "--full-refresh")
        assert version(project, "in_turn") == 9, "the model's own `full_refresh: false` holds"


@pytest.mark.kept
class TestABatchThatFails:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        unfiltered = "{{ config(materialized='table') }} select id, at from {{ ref('events') }}"
        return {
            "events.sql": EVENTS,
            "plain.sql": unfiltered,
            "partly.sql": batched("at", "concurrent_batches=true") + FAILING,
            "first_outside.sql": batched("at", ref="plain", begin="2026-03-07"),
            "outside.sql": batched("at", ref="plain", begin="2026-03-07")
            + "{% if model.batch and model.batch.id == '20260307' %}"
            " where at >= timestamp'2026-03-07 00:00:00Z' and at < timestamp'2026-03-08 00:00:00Z' {% endif %}",
        }

    @pytest.mark.own_process("which batches there are by now is patched")
    def test_the_other_batches_land_and_a_retry_runs_that_one_alone(self, project: Any) -> None:
        run("--select", "events", "plain", "partly", "--vars", "broken: true", expect_pass=False)
        assert ids(project, "partly") == [*range(6), *range(8, 16)]
        assert version(project, "partly") == 6
        project.run_sql(f"delete from {project.test_schema}.partly where id = 0")
        run_dbt(["retry", "--vars", "broken: false"])
        assert ids(project, "partly") == [*range(1, 16), 100], "no batch that had landed ran again"

    @pytest.mark.parametrize(("model", "lands"), [("first_outside", None), ("outside", 0)])
    def test_rows_outside_of_the_window_are_refused_with_what_to_do(
        self, project: Any, model: str, lands: int | None
    ) -> None:
        with patch_microbatch_end_time(NOW):
            _, output = run_dbt_and_capture(["run", "--select", model], expect_pass=False)
        assert ("outside of" if lands is None else "not match the condition") in output
        assert "configure `event_time` on the model's inputs" in output
        place = RelationName(project.database, project.test_schema, model)
        assert (project.adapter.connections.catalog.find(place) is None) is (lands is None)
        if lands is not None:
            assert version(project, model) == lands

    def test_an_event_time_that_is_no_time_is_refused(self, project: Any) -> None:
        write_file(batched("cast(at as string)"), project.project_root, "models", "textual.sql")
        with patch_microbatch_end_time(NOW):
            _, output = run_dbt_and_capture(["run", "--select", "textual"], expect_pass=False)
        assert "`event_time` names at, which is of type string: cast it to a timestamp or a date" in output
